/** Batches of the consensus RPC whose answers are large: what many clients ask for at once is bounded. */
import { expect, it, jest } from "@jest/globals";
import { setImmediate as nextTurn } from "node:timers/promises";
import { LazySignal } from "../../../../runtime/process/lazy-signal.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { answerBody, LargeBatches } from "../../../../node/rpc/comet/json-rpc.js";
import { route } from "../../../../node/rpc/comet/route.js";

const CLIENTS = 6;
const OWNER = { client: "192.0.2.1" };

it("goes on with two batches at a time that hold more than a megabyte", async () => {
  let waiting: (() => void)[] = [];
  const routes = new Map([
    route("large", [], () => "x".repeat(1_500_000)),
    route("slow", [], () => new Promise<string>((resolve) => waiting.push(() => resolve("ended")))),
  ]);
  const log = createLogger({ component: "test", level: "silent" });
  const large = new LargeBatches();
  const calls = ["large", "slow"].map((method, id) => ({ jsonrpc: "2.0", id, method }));
  const body = Buffer.from(JSON.stringify(calls));
  const left = new LazySignal(() => OWNER);
  const ask = (ending = new LazySignal(() => OWNER)) =>
    answerBody(body, { routes, log, ending, large, client: () => undefined });
  const enter = jest.spyOn(large, "enter");
  const answers = Array.from({ length: CLIENTS }, () => ask());
  const gone = ask(left);
  for (let turn = 0; turn < 50; turn++) await nextTurn();
  expect(waiting).toHaveLength(2);
  expect(new Set(enter.mock.calls.map(([, client]) => client))).toEqual(new Set([OWNER.client]));

  left.abort();
  expect(await gone).toBeUndefined();
  for (let ended = 0; ended < CLIENTS; ended += 2) {
    expect(waiting).toHaveLength(2);
    for (const end of waiting.splice(0)) end();
    for (let turn = 0; turn < 50; turn++) await nextTurn();
  }
  waiting = [];
  for (const answer of await Promise.all(answers)) {
    expect(answer?.pieces.map(String).join("")).toContain('"result":"ended"');
  }
});
