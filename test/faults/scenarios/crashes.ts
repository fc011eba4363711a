/** 1 to 10: `kill -9` at each durable step of a withdrawal, and at random moments. */
import { Transaction } from "ethers";
import { WORKER_FAILPOINTS } from "../../../withdrawal-worker/failpoints.js";
import { pause } from "../../helpers/faults/bench.js";
import type { LabExchange } from "../../helpers/faults/lab/lab-exchange.js";
import { always, editing, first, on } from "../../helpers/faults/proxy/rules.js";
import { until } from "../../helpers/until.js";
import type { Scenario } from "./scenario.js";

/** Price that the node of one scenario wants, above what it suggests. */
const WANTED_PRICE = 40_000_000n;

const RANDOM_KILLS = 8;
const MAX_GAP_MS = 700;

/** Kills the worker at each of these steps, one after the other, while customers work. */
async function strike(lab: LabExchange, ...failpoints: readonly string[]): Promise<void> {
  const { process } = lab.worker;
  for (const failpoint of failpoints) {
    const kills = process.kills + 1;
    await process.stop();
    await process.begin({ CAUSEWAY_FAILPOINT: failpoint });
    const working = lab.work();
    await process.untilKilled(kills);
    await working;
  }
}

const { afterAcceptCommit, afterRefusalCommit, afterSlotCommit } = WORKER_FAILPOINTS;
const { beforeAttemptCommit, afterAttemptCommit, afterSend } = WORKER_FAILPOINTS;
const { afterBroadcastCommit, afterCorrectionCommit } = WORKER_FAILPOINTS;
const { beforeInclusionCommit, afterInclusionCommit, afterSettleCommit } = WORKER_FAILPOINTS;

/** The ten. */
export const CRASHES: readonly Scenario[] = [
  {
    number: 1,
    name: "kill -9 after the request is stored, before its answer",
    run: (lab) => strike(lab, afterAcceptCommit),
  },
  {
    number: 2,
    name: "kill -9 after the hold, before anybody is woken: the tables alone find it",
    async run(lab) {
      const { process } = lab.worker;
      const kills = process.kills + 1;
      await process.stop();
      await process.start({ CAUSEWAY_FAILPOINT: afterAcceptCommit });
      const request = lab.customers.plan("fresh");
      // Asked once and never again: the answer is lost with the process.
      await lab.customers.askOnce(request);
      await process.untilKilled(kills);
      const isSettled = async () => {
        const rows = await lab.query<{ id: string }>(
          `SELECT id FROM withdrawal WHERE idempotency_key = $1 AND status = 'settled'`,
          [request.key],
        );
        return rows.length === 1;
      };
      await until(isSettled, { timeoutMs: 60_000, what: "the request nobody repeats is paid" });
      request.id = await lab.customers.ask(request);
    },
  },
  {
    number: 3,
    name: "kill -9 after a nonce is taken, and after a refusal",
    run: (lab) => strike(lab, afterSlotCommit, afterRefusalCommit),
  },
  {
    number: 4,
    name: "kill -9 after signing, before the bytes are stored",
    run: (lab) => strike(lab, beforeAttemptCommit),
  },
  {
    number: 5,
    name: "kill -9 after the bytes are stored, before they are sent",
    run: (lab) => strike(lab, afterAttemptCommit),
  },
  {
    number: 6,
    name: "kill -9 while the bytes are on the wire and no answer comes",
    async run(lab) {
      const { node, process } = lab.worker;
      node.rules = [on(["eth_sendRawTransaction"], first(2, always({ kind: "hang after" })))];
      const working = lab.work();
      await until(() => node.hitsOf("hang after") > 0, { timeoutMs: 60_000, what: "bytes sent" });
      process.kill();
      await process.untilKilled(1);
      await working;
    },
  },
  {
    number: 7,
    name: "kill -9 after the node took it, before and after the ledger knows",
    run: (lab) => strike(lab, afterSend, afterBroadcastCommit),
  },
  {
    number: 8,
    name: "kill -9 after a replacement is signed, before it is sent",
    async run(lab) {
      const refuseCheap = editing("price below minimum", ({ method, params }) => {
        if (method !== "eth_sendRawTransaction") return undefined;
        const { gasPrice } = Transaction.from(String(params[0]));
        if (gasPrice === null || gasPrice >= WANTED_PRICE) return undefined;
        const message =
          `transaction gas price below minimum: gas tip cap ${gasPrice}, ` +
          `minimum needed ${WANTED_PRICE}`;
        return { reply: { error: { code: -32_000, message } } };
      });
      lab.worker.node.rules = [refuseCheap];
      await strike(lab, afterCorrectionCommit);
    },
  },
  {
    number: 9,
    name: "kill -9 around the receipt: seen, recorded, booked, event not yet told",
    run: (lab) => strike(lab, beforeInclusionCommit, afterInclusionCommit, afterSettleCommit),
  },
  {
    number: 10,
    name: "kill -9 of worker and watcher at random times",
    async run(lab) {
      const victims = [lab.worker.process, lab.watcher.process];
      for (let round = 0; round < RANDOM_KILLS; round += 1) {
        const victim = lab.random.pick(victims);
        const working = lab.work();
        await pause(lab.random.integer(MAX_GAP_MS));
        victim.kill();
        await victim.untilReady();
        await working;
      }
    },
  },
];
