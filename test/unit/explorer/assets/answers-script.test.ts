/** What "Verify in this browser" fetches from a server that lets each reader have so many pages in a minute. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "@jest/globals";

/** The scripts have no types of their own. */
interface AnswersScript {
  readonly jsonOf: (path: string) => Promise<unknown>;
  readonly Unanswered: new () => Error;
}

const ASSETS = "../../../../explorer/assets";
const { jsonOf, Unanswered }: AnswersScript = await import(`${ASSETS}/answers.mjs`);

/** Refusals before the answer; the answer's status, and what is said of when to come again. */
let refusals = 0;
let refusal = { status: 429, retryAfter: "1" };
let asked = 0;

const server = createServer((_request, response) => {
  asked += 1;
  refusals -= 1;
  if (refusals < 0) {
    response.end('{"height":7}');
    return;
  }
  response.statusCode = refusal.status;
  if (refusal.retryAfter !== "") response.setHeader("retry-after", refusal.retryAfter);
  response.end("later");
});

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

async function answered(times: number, given: typeof refusal): Promise<unknown> {
  [refusals, refusal, asked] = [times, given, 0];
  const { port } = server.address() as AddressInfo;
  return jsonOf(`http://127.0.0.1:${port}/proof/headers/7`);
}

it("is waited for where the server says when: a proof of many headers is no refuted proof", async () => {
  expect(await answered(2, { status: 429, retryAfter: "1" })).toEqual({ height: 7 });
  expect(asked).toBe(3);
});

it("is not asked for again where it is not to be had, or not soon", async () => {
  for (const given of [
    { status: 404, retryAfter: "1" },
    { status: 503, retryAfter: "5" },
    { status: 429, retryAfter: "" },
    { status: 429, retryAfter: "3600" },
  ]) {
    await expect(answered(1, given)).rejects.toThrow(`HTTP ${given.status}`);
    expect({ given, asked }).toEqual({ given, asked: 1 });
  }
});

it("is told apart from a refuted proof where it could not be had", async () => {
  await expect(answered(1, { status: 503, retryAfter: "5" })).rejects.toBeInstanceOf(Unanswered);
  await expect(jsonOf("http://127.0.0.1:1/proof/headers/7")).rejects.toBeInstanceOf(Unanswered);
});
