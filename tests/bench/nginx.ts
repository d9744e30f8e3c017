export interface NginxOptions {
  /** nginx's own folder. */
  prefix: string;
  port: number;
  backendPort: number;
  /** undefined: all requests are accepted, and there is no access log. */
  keys: readonly string[] | undefined;
}

/** One worker, keep-alive connections to the backend, no buffering. */
export function nginxConfiguration({ prefix, port, backendPort, keys }: NginxOptions): string {
  const map = keys?.map((key) => `    "Bearer ${key}" 1;`).join("\n");
  return `
daemon off;
worker_processes 1;
worker_rlimit_nofile 65536;
pid ${prefix}/nginx.pid;
events { worker_connections 16384; }
http {
  access_log ${keys === undefined ? "off" : `${prefix}/access.log combined`};
  client_body_temp_path ${prefix}/body;
  proxy_temp_path ${prefix}/proxy;
  fastcgi_temp_path ${prefix}/fastcgi;
  uwsgi_temp_path ${prefix}/uwsgi;
  scgi_temp_path ${prefix}/scgi;
  keepalive_requests 100000000;
  client_max_body_size 0;
  client_body_buffer_size 2m;
  map_hash_bucket_size 128;
  upstream backend {
    server 127.0.0.1:${backendPort};
    keepalive 1024;
    keepalive_requests 100000000;
  }
  map $http_authorization $admitted {
    default ${keys === undefined ? 1 : 0};
${map ?? ""}
  }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / {
      ${keys === undefined ? "" : "if ($admitted = 0) { return 401; }"}
      proxy_pass http://backend;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_request_buffering off;
      proxy_read_timeout 1200s;
    }
  }
}
`;
}
