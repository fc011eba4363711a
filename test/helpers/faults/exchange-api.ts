/** The exchange's APIs as its own systems ask them: patiently, with its key, in JSON. */
import { patientFetch } from "./chain.js";

/** The two APIs. */
export type ApiName = "depositApi" | "withdrawalApi";

/** With a body it is a POST. */
export interface ApiRequest {
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
}

/** Whatever its status is. */
export interface ApiAnswer {
  readonly status: number;
  readonly body: unknown;
}

/** A request as `fetch` takes it. */
export function apiInit(key: string, { body, headers }: ApiRequest): RequestInit {
  return {
    method: body === undefined ? "GET" : "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  };
}

/** Asks until something answers. URL and key are read anew each time: both may change meanwhile. */
export function askApi(
  url: () => string,
  key: () => string,
  request: ApiRequest,
): Promise<ApiAnswer> {
  return patientFetch(url, () => apiInit(key(), request));
}
