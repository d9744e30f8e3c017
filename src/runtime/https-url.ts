type Handler<R> = (request: R) => Response | Promise<Response>;

/**
 * With `standardHostname: false`, Elysia (1.4.30) looks for the path right after `http://`, and in `https://host/path`
 * finds `/host/path`. So a request over HTTPS gets a URL with `http:` before it reaches Elysia; nothing here needs the
 * scheme. Remove when Elysia finds the path in both.
 */
export const withHttpUrl =
  <R extends Request>(handler: Handler<R>): Handler<R> =>
  (request) => {
    const { url } = request;
    if (url.startsWith("https:")) Object.defineProperty(request, "url", { value: `http${url.slice("https".length)}` });
    return handler(request);
  };
