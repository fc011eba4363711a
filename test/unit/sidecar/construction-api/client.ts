/** Requests to the construction endpoints of a server. */
import { expect } from "@jest/globals";
import type { HttpServer } from "../../../../runtime/http/http-server.js";
import type { Reply } from "../replies.js";
import { call } from "../servers.js";

/** Requests to one server's construction endpoints. */
export interface ConstructionSteps {
  readonly post: (
    path: string,
    fields: Record<string, unknown>,
  ) => Promise<{ status: number; body: Reply }>;
  /** The reply's body, or a failure that shows the error. */
  readonly good: (path: string, fields: Record<string, unknown>) => Promise<Reply>;
  /** Number of the error; a success fails. */
  readonly codeOf: (path: string, fields: Record<string, unknown>) => Promise<number>;
}

export function stepsOn(server: () => HttpServer): ConstructionSteps {
  const post = async (path: string, fields: Record<string, unknown>) =>
    call(server(), `/construction/${path}`, fields);
  return {
    post,
    async good(path, fields) {
      const { status, body } = await post(path, fields);
      expect({ path, status, body }).toMatchObject({ status: 200 });
      return body;
    },
    async codeOf(path, fields) {
      const { status, body } = await post(path, fields);
      expect({ path, status, body }).toMatchObject({ status: 500 });
      return body.code;
    },
  };
}
