/** 24 to 28: everything that a wire, a balancer or a broken node can answer. */
import type { LabExchange } from "../../helpers/faults/lab/lab-exchange.js";
import type { Rule, WireFault } from "../../helpers/faults/proxy/http-proxy.js";
import {
  always,
  BALANCER,
  BROKEN_BODIES,
  editing,
  first,
  GIANT_BODY,
  inTurn,
  on,
  sometimes,
} from "../../helpers/faults/proxy/rules.js";
import { Transaction } from "ethers";
import { pause } from "../../helpers/faults/bench.js";
import { until } from "../../helpers/until.js";
import type { Scenario } from "./scenario.js";

const SEND = ["eth_sendRawTransaction"];

/** Requests that meet the fault for sure, before it becomes rare. */
const SURE = 4;

/** Time that a burst of refusals lasts. */
const BURST_MS = 5_000;

/** Payments that a node claims to have and throws away. */
const CLAIMED = 6;

/** Each fault for the first payments for sure, then at every tenth request of any kind. */
async function underWireFaults(lab: LabExchange, ...faults: readonly WireFault[]): Promise<void> {
  const anything = sometimes(0.1, ...faults);
  lab.worker.node.rules = [on(SEND, first(SURE, inTurn(...faults.map(always)))), anything];
  lab.watcher.node.rules = [first(SURE, inTurn(...faults.map(always))), anything];
  lab.watcher.blocks.rules = [first(SURE, inTurn(...faults.map(always))), anything];
  await lab.work(2);
  for (const proxy of [lab.worker.node, lab.watcher.node, lab.watcher.blocks]) {
    await until(() => faults.every((fault) => proxy.hitsOf(nameOf(fault)) > 0), {
      timeoutMs: 60_000,
      what: "every fault of the list on every way",
    });
  }
}

function nameOf(fault: WireFault): string {
  return "name" in fault ? fault.name : fault.kind;
}

/** Says yes to a payment and throws it away. */
const claim: Rule = editing("claims success", ({ method, params }) =>
  method === "eth_sendRawTransaction"
    ? { reply: { result: Transaction.from(String(params[0])).hash } }
    : undefined,
);

/** The five. */
export const WIRES: readonly Scenario[] = [
  {
    number: 24,
    name: "the node takes it and no answer comes, or is never reached and no answer comes",
    run: (lab) => underWireFaults(lab, { kind: "hang after" }, { kind: "hang before" }),
  },
  {
    number: 25,
    name: "the connection is reset, before and after the node has it",
    run: (lab) => underWireFaults(lab, { kind: "reset after" }, { kind: "reset before" }),
  },
  {
    number: 26,
    name: "the node throws payments away and claims success",
    async run(lab) {
      lab.worker.node.rules = [on(SEND, first(CLAIMED, claim))];
      await lab.work(2);
      await until(() => lab.worker.node.hitsOf() >= CLAIMED, {
        timeoutMs: 60_000,
        what: "payments that are claimed and lost",
      });
    },
  },
  {
    number: 27,
    name: "pages of HTML, halves, wrong ids, batches in disorder, bodies without end",
    async run(lab) {
      await underWireFaults(lab, ...BROKEN_BODIES);
      const giant = first(1, always(GIANT_BODY));
      lab.worker.node.rules = [on(SEND, giant)];
      lab.watcher.node.rules = [first(1, always(GIANT_BODY))];
      await lab.work();
      await until(() => lab.worker.node.hitsOf("giant") > 0, {
        timeoutMs: 60_000,
        what: "a body without end",
      });
    },
  },
  {
    number: 28,
    name: "bursts of 429, 502, 503 and 504",
    async run(lab) {
      for (const member of [lab.worker, lab.watcher]) {
        member.node.rules = [sometimes(1, ...BALANCER)];
        member.blocks.rules = [sometimes(1, ...BALANCER)];
      }
      const working = lab.work(2);
      await pause(BURST_MS);
      for (const member of [lab.worker, lab.watcher]) {
        member.node.rules = [sometimes(0.3, ...BALANCER)];
        member.blocks.rules = [sometimes(0.3, ...BALANCER)];
      }
      await working;
      await lab.customers.untilEnded(lab.customers.requests.length);
    },
  },
];
