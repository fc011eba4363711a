/** A client that subscribes and unsubscribes all day leaves nothing behind. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { Arguments } from "../../../../node/rpc/comet/arguments.js";
import { ResultTexts } from "../../../../node/rpc/comet/json/result-texts.js";
import type { EventReceiver } from "../../../../node/rpc/comet/route.js";
import { SubscriptionHub } from "../../../../node/rpc/comet/subscriptions.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { CometTestChain } from "../../../helpers/chains/comet-chain.js";
import { until } from "../../../helpers/until.js";
import { ALICE } from "../evm/fixture.js";

let chain: CometTestChain;

beforeAll(async () => {
  chain = await CometTestChain.open(ALICE.address);
});

afterAll(() => chain.close());

it("hears once of a client's end, and sends it nothing behind that", async () => {
  const texts = new ResultTexts(chain.chain.view);
  const log = createLogger({ component: "test", level: "silent" });
  const hub = new SubscriptionHub(chain.ports, texts, log);
  const routes = new Map(hub.routes());
  const closings: (() => void)[] = [];
  const pushed: string[] = [];
  const connection: EventReceiver = {
    push(text) {
      pushed.push(text);
      return "sent";
    },
    cutOff: () => undefined,
    onClose: (callback) => closings.push(callback),
  };
  const run = (name: string, query: string) => {
    const values = new Arguments({ form: "json", values: new Map([["query", query]]) });
    const { signal } = new AbortController();
    return routes.get(name)?.run(values, { signal, client: { requestId: 1, connection } });
  };
  for (let round = 0; round < 50; round++) {
    run("subscribe", "tm.event='NewBlockHeader'");
    run("unsubscribe", "tm.event='NewBlockHeader'");
  }
  run("subscribe", "tm.event='NewBlockHeader'");
  expect(closings).toHaveLength(1);
  await chain.mine();
  await until(() => pushed.length === 1, { timeoutMs: 30_000 });
  for (const closing of closings) closing();
  expect(() => run("unsubscribe", "tm.event='NewBlockHeader'")).toThrow("subscription not found");
  await chain.mine();
  expect(pushed).toHaveLength(1);
  hub.close();
});
