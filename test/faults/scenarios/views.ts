/** 19, 21 to 23 and 29 to 32: a node that is down, behind, of another chain, or of two minds. */
import { pause } from "../../helpers/faults/bench.js";
import type { LabExchange } from "../../helpers/faults/lab/lab-exchange.js";
import type { Rule } from "../../helpers/faults/proxy/http-proxy.js";
import {
  changing,
  editing,
  inTurn,
  replying,
  sometimes,
  stale,
} from "../../helpers/faults/proxy/rules.js";
import { until } from "../../helpers/until.js";
import { assertHappened, type Scenario } from "./scenario.js";

const FAULT_MS = 5_000;
const KILLS = 3;

const TOKEN_PAYMENTS = 6;

/** Blocks to the height at which the node halts for its upgrade. */
const BLOCKS_TO_UPGRADE = 20;

/** Every way to the node follows these rules for a while; what stands still must not go on. */
async function blindfold(
  lab: LabExchange,
  view: readonly Rule[] | (() => Promise<readonly Rule[]>),
  progress: (lab: LabExchange) => Promise<string> = paymentsAndCredits,
): Promise<void> {
  await lab.work();
  await lab.customers.settled();
  const rules = typeof view === "function" ? await view() : view;
  for (const { node, blocks } of [lab.worker, lab.watcher]) {
    node.rules = rules;
    blocks.rules = rules;
  }
  // What was under way when the view changed may still end.
  for (const { node } of [lab.worker, lab.watcher]) {
    const hits = node.hitsOf();
    await until(() => node.hitsOf() > hits + 1, { timeoutMs: 60_000, what: "a look at the node" });
  }
  await goesNotOn(lab, progress);
}

/** New work waits until the way is healed. */
async function goesNotOn(
  lab: LabExchange,
  progress: (lab: LabExchange) => Promise<string>,
): Promise<void> {
  const before = await progress(lab);
  const working = lab.work();
  await pause(FAULT_MS);
  const after = await progress(lab);
  if (after !== before) throw new Error(`it went on by such a view: ${before}, then ${after}`);
  await lab.heal();
  await working;
}

/**
 * A node that serves blocks, states and heights as ours does, and says that it is another network's: the
 * worker asks in each round, a watcher that has looked once only behind a fault.
 */
async function misplace(lab: LabExchange, name: string, lie: Rule): Promise<void> {
  await lab.work();
  await lab.customers.settled();
  const { worker, watcher } = lab;
  worker.node.rules = [lie];
  watcher.node.rules = [lie, replying("no height", "eth_blockNumber", () => ({ error: gone }))];
  const isRefused = async () => (await lab.readiness(watcher)).includes("serves another chain");
  await until(isRefused, { timeoutMs: 60_000, what: `the watcher says no to the ${name}` });
  watcher.node.rules = [lie];
  const hits = worker.node.hitsOf(name);
  await until(() => worker.node.hitsOf(name) > hits + 1, {
    timeoutMs: 60_000,
    what: `the worker meets the ${name}`,
  });
  await goesNotOn(lab, paymentsAndCredits);
  assertHappened(watcher.node.hitsOf(name), `the ${name} for the watcher`);
}

/** Payments sent and deposits credited so far. */
async function paymentsAndCredits(lab: LabExchange): Promise<string> {
  const { chain, hotWallet } = lab.customers;
  const nonce = await chain.call("eth_getTransactionCount", hotWallet, "pending");
  return `${String(nonce)} payments, ${await creditsAlone(lab)}`;
}

async function creditsAlone(lab: LabExchange): Promise<string> {
  const [row] = await lab.query<{ credited: string }>(
    `SELECT count(*)::text AS credited FROM deposit WHERE status = 'credited'`,
  );
  return `${row?.credited} credits`;
}

/** A rule that holds for a share of the requests. */
function partly(share: number, rule: Rule): Rule {
  return (exchange, random) =>
    random.integer(1_000) < share * 1_000 ? rule(exchange, random) : undefined;
}

const isGenesis = (block: unknown): boolean => Number(Reflect.get(Object(block), "number")) === 0;

const otherHash = `0x${"ab".repeat(32)}`;

/** The eight. */
export const VIEWS: readonly Scenario[] = [
  {
    number: 19,
    name: "the node is killed and started again, three times",
    isShared: true,
    async run(lab) {
      const { node } = lab.options.chain;
      for (let round = 0; round < KILLS; round += 1) {
        const working = lab.work();
        await pause(lab.random.integer(600));
        if (node.isReady) node.kill();
        await pause(300);
        await node.untilReady();
        await working;
      }
    },
  },
  {
    number: 21,
    name: "the height stands still",
    async run(lab) {
      const { chain } = lab.customers;
      // The newest height, as soon as it is there: below what is booked it would have gone back.
      const standing = async () => {
        const at = (await chain.height()) + 1;
        await until(async () => (await chain.height()) >= at, {
          timeoutMs: 60_000,
          what: "a block",
        });
        return [stale({ at })];
      };
      // Payments may be sent to a chain that stands still: they are mined once it goes on.
      await blindfold(lab, standing, creditsAlone);
    },
  },
  {
    number: 22,
    name: "the node says that it is catching up",
    async run(lab) {
      const syncing = { startingBlock: "0x0", currentBlock: "0x1", highestBlock: "0xffff" };
      // A watcher that has looked once asks again only after a fault.
      await blindfold(lab, [
        replying("catching up", "eth_syncing", () => ({ result: syncing })),
        replying("stands still", "eth_blockNumber", () => ({ result: "0x1" })),
      ]);
    },
  },
  {
    number: 23,
    name: "the node halts at a height, and another program goes on from there",
    isShared: true,
    async run(lab) {
      const { node, chain } = lab.options.chain;
      const height = (await chain.height()) + BLOCKS_TO_UPGRADE;
      const working = lab.work();
      await node.stop("SIGTERM");
      await node.begin({ CAUSEWAY_APP_HALT_HEIGHT: String(height) });
      const more = lab.work(2);
      const ends = node.ownEnds.length;
      await until(() => node.ownEnds.length > ends, { timeoutMs: 60_000, what: "the halt" });
      node.ownEnds.length = ends;
      await node.untilReady();
      await working;
      await more;
      const shown = await chain.height();
      if (shown < height) throw new Error(`the chain stands at ${shown}, not behind ${height}`);
    },
  },
  {
    number: 29,
    name: "the node is of another chain, or of another genesis",
    async run(lab) {
      const chain = replying("other chain", "eth_chainId", () => ({ result: "0x1" }));
      await misplace(lab, "other chain", chain);
      const genesis = editing("other genesis", ({ method, params }) =>
        method === "eth_getBlockByNumber" && params[0] === "0x0"
          ? { change: ({ result }) => ({ result: { ...Object(result), hash: otherHash } }) }
          : undefined,
      );
      await misplace(lab, "other genesis", genesis);
    },
  },
  {
    number: 30,
    name: "two nodes disagree about a block: crediting halts until a person resumes it",
    async run(lab) {
      await lab.work();
      await lab.customers.settled();
      lab.watcher.node.rules = [
        changing("other hash", "eth_getBlockByNumber", (block) =>
          isGenesis(block) ? block : { ...Object(block), hash: otherHash },
        ),
      ];
      const working = lab.work();
      const isHalted = async () =>
        (await lab.query(`SELECT 1 FROM incident WHERE resolved_at IS NULL`)).length > 0;
      await until(isHalted, { timeoutMs: 60_000, what: "an incident" });
      // What had its signature may still leave.
      await pause(FAULT_MS / 4);
      const before = await paymentsAndCredits(lab);
      await pause(FAULT_MS / 2);
      const after = await paymentsAndCredits(lab);
      if (after !== before) throw new Error(`it went on over an incident: ${before}, ${after}`);
      await lab.heal();
      const resumed = await lab.command("deposits", "resume");
      if (resumed.code !== 0) throw new Error(`resume: ${resumed.stdout}${resumed.stderr}`);
      await working;
    },
  },
  {
    number: 31,
    name: "a balancer before a fresh and a late node: nonce from one, receipt from the other",
    async run(lab) {
      for (const { node } of [lab.worker, lab.watcher]) {
        node.rules = [partly(0.5, stale({ behind: 4 }))];
      }
      await lab.work(3);
      await lab.customers.untilEnded(lab.customers.requests.length / 2);
      lab.worker.node.rules = [inTurn(stale({ behind: 2 }), undefined)];
      await lab.work();
      await pause(FAULT_MS);
      assertHappened(lab.worker.node.hitsOf("stale"), "a late answer to the worker");
      assertHappened(lab.watcher.node.hitsOf("stale"), "a late answer to the watcher");
    },
  },
  {
    number: 32,
    // Of a token that the Data API leaves out logs are the only word.
    name: "eth_getLogs is empty or refused: no money of a token with operations depends on it",
    setup: { hasToken: true },
    async run(lab) {
      const refused = { code: -32_005, message: "query returned more than 10000 results" };
      for (const { node } of [lab.worker, lab.watcher]) {
        node.rules = [
          inTurn(
            replying("no logs", "eth_getLogs", () => ({ result: [] })),
            replying("too many logs", "eth_getLogs", () => ({ error: refused })),
            sometimes(0.1, { kind: "reset before" }),
          ),
        ];
      }
      const { customers } = lab;
      for (let payment = 0; payment < TOKEN_PAYMENTS; payment += 1) {
        await customers.payToken("alice");
      }
      await lab.work(2);
      await customers.settled();
      for (const fault of ["no logs", "too many logs"]) {
        await until(() => lab.watcher.node.hitsOf(fault) > 0, {
          timeoutMs: 60_000,
          what: `the watcher meets "${fault}"`,
        });
      }
      // Payments ask for none.
      if (!lab.worker.node.methods.has("eth_getLogs")) return;
      throw new Error("the worker asks for logs: let the faults meet it");
    },
  },
];

const gone = { code: -32_000, message: "the node does not know" };
