import { connectRaw, type RawClient } from "./raw-client.ts";

/** A request is a POST if it has a body, and that is JSON, unless this says otherwise. */
export interface Sent extends Omit<BunFetchRequestInit, "body" | "headers"> {
  /** Instead of the client's own. */
  key?: string;
  /** For the simulator. */
  script?: string;
  headers?: Readonly<Record<string, string>>;
}

/** What the holder of an API key sends. An object is sent as JSON, text and bytes as they are. */
export interface Client {
  send(path: string, body?: object | string, sent?: Sent): Promise<Response>;
  /** @returns what tells how the response comes and ends */
  sendRaw(path: string, body?: object | string, sent?: Sent): Promise<RawClient>;
}

const isSentAsItIs = (body: object | string): body is string | Uint8Array<ArrayBuffer> | FormData | ReadableStream =>
  typeof body === "string" ||
  ArrayBuffer.isView(body) ||
  [FormData, Blob, ReadableStream].some((type) => body instanceof type);

export function clientOf(url: string, ownKey: string): Client {
  function requestOf(body: object | string | undefined, { key = ownKey, script, headers, ...init }: Sent) {
    const hasType = body === undefined || body instanceof FormData || body instanceof Blob;
    return {
      method: body === undefined ? "GET" : "POST",
      ...init,
      headers: {
        "x-api-key": key,
        ...(!hasType && { "content-type": "application/json" }),
        ...(script !== undefined && { "x-simulate": script }),
        ...headers,
      },
      ...(body !== undefined && { body: isSentAsItIs(body) ? body : JSON.stringify(body) }),
    };
  }
  return {
    send: (path, body, sent = {}) => fetch(url + path, requestOf(body, sent)),
    async sendRaw(path, body, sent = {}) {
      const { method, headers, body: bytes } = requestOf(body, sent);
      const client = await connectRaw(url);
      client.request(method, path, headers, bytes as string | undefined);
      return client;
    },
  };
}
