/** One HTTP request over a connection of its own, without a client's own ideas. */
import { request as httpRequest } from "node:http";

/** A reply as it came. */
export interface RawReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** Redirects and encodings are left alone. */
export function rawRequest(
  port: number,
  target: string,
  given: {
    readonly method?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string | undefined;
    /** Address of this machine that it comes from. */
    readonly from?: string | undefined;
  } = {},
): Promise<RawReply> {
  const { method = "GET", headers = {}, body, from } = given;
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      {
        host: "127.0.0.1",
        port,
        path: target,
        headers: { ...headers },
        method,
        agent: false,
        ...(from === undefined ? {} : { localAddress: from }),
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: Buffer.concat(chunks).toString("utf8"),
          }),
        );
      },
    );
    request.on("error", reject);
    request.end(body);
  });
}
