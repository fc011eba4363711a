/** 34 to 38 and 41: pools that forget, refuse and race; receipts that hide; prices that jump. */
import { Transaction } from "ethers";
import { pause } from "../../helpers/faults/bench.js";
import type { LabExchange } from "../../helpers/faults/lab/lab-exchange.js";
import type { Call, CallEdit, Reply, Rule } from "../../helpers/faults/proxy/http-proxy.js";
import { changing, editing, first, on } from "../../helpers/faults/proxy/rules.js";
import { until } from "../../helpers/until.js";
import type { Scenario } from "./scenario.js";

const SEND = "eth_sendRawTransaction";

/** Payments that a pool says it knows and does not have. */
const FORGOTTEN = 6;

/** Nobody is asked about a better price before this. */
const QUICK_REPRICE = { CAUSEWAY_WORKER_WORKER_REPRICE_AFTER_MS: "1000" };

/** Longer than the worker's patience with a missing receipt. */
const HIDDEN_MS = 8_000;

/** Refuses payments in these words; the node never sees them. */
function refuse(name: string, words: (nonce: number) => string): Rule {
  return editing(name, ({ method, params }) =>
    method === SEND
      ? { reply: { error: { code: -32_000, message: words(transactionOf(params).nonce) } } }
      : undefined,
  );
}

function transactionOf(params: readonly unknown[]): Transaction {
  return Transaction.from(String(params[0]));
}

/** A pool before the node's own, which keeps the first transaction of each nonce to itself. */
class Vestibule {
  readonly #kept = new Map<number, Transaction>();
  readonly replaced: { readonly first: string; readonly second: string }[] = [];

  /** Decides about a second transaction of a nonce. */
  constructor(
    private readonly onReplacement: (
      replacement: Transaction,
      ask: (call: Call) => Promise<Reply>,
    ) => Promise<CallEdit | undefined>,
  ) {}

  readonly rule: Rule = editing("kept", (call, ask) => this.#edit(call, ask));

  /** The transactions that are kept, in the order of their nonces. */
  get kept(): readonly string[] {
    return [...this.#kept.values()]
      .toSorted((left, right) => left.nonce - right.nonce)
      .map(({ serialized }) => serialized);
  }

  async #edit(
    { method, params }: Call,
    ask: (call: Call) => Promise<Reply>,
  ): Promise<CallEdit | undefined> {
    if (method === "eth_getTransactionCount" && params[1] === "pending") {
      return { change: ({ result }) => ({ result: this.#next(Number(result)) }) };
    }
    if (method !== SEND) return undefined;
    const transaction = transactionOf(params);
    const before = this.#kept.get(transaction.nonce);
    if (before === undefined || before.hash === transaction.hash) {
      this.#kept.set(transaction.nonce, transaction);
      return { reply: { result: transaction.hash } };
    }
    this.replaced.push({ first: before.serialized, second: transaction.serialized });
    return this.onReplacement(transaction, ask);
  }

  #next(mined: number): string {
    let next = mined;
    while (this.#kept.has(next)) next += 1;
    return `0x${next.toString(16)}`;
  }
}

/** Sends bytes to the node itself, as somebody else's node would pass them on. */
async function passOn(lab: LabExchange, raws: readonly string[]): Promise<void> {
  await lab.customers.chain.batch(raws.map((raw) => [SEND, [raw]] as const));
}

/** The six. */
export const POOLS: readonly Scenario[] = [
  {
    number: 34,
    name: "the pool says that it has a payment already, and has not",
    async run(lab) {
      const words = ["tx already exists in cache", "already known", "Tx already in mempool"];
      const lie = refuse("already there", () => lab.random.pick(words));
      lab.worker.node.rules = [on([SEND], first(FORGOTTEN, lie))];
      await lab.work(2);
      await until(() => lab.worker.node.hitsOf() >= FORGOTTEN, {
        timeoutMs: 60_000,
        what: "payments that the pool only says it has",
      });
    },
  },
  {
    number: 35,
    name: "a nonce that waits is called invalid, too low or too high",
    async run(lab) {
      const words = [
        (nonce: number) => `invalid nonce; got ${nonce}, expected ${nonce + 1}: invalid sequence`,
        (nonce: number) => `nonce too low: next nonce ${nonce + 1}, tx nonce ${nonce}`,
        (nonce: number) => `invalid nonce; got ${nonce}, expected ${nonce - 1}: invalid sequence`,
        () => "nonce too high",
      ];
      const lie = refuse("invalid nonce", (nonce) => lab.random.pick(words)(nonce));
      lab.worker.node.rules = [on([SEND], first(FORGOTTEN, lie))];
      await lab.work(2);
      await until(() => lab.worker.node.hitsOf() >= FORGOTTEN, {
        timeoutMs: 60_000,
        what: "payments whose nonce is called invalid",
      });
    },
  },
  {
    number: 36,
    name: "the chain forbids replacements: the first payment is mined in the end",
    setup: { workerEnv: QUICK_REPRICE },
    async run(lab) {
      const pool = new Vestibule(async ({ nonce }) => {
        const message = `invalid nonce; got ${nonce}, expected ${nonce + 1}: invalid sequence`;
        return { reply: { error: { code: -32_000, message } } };
      });
      lab.worker.node.rules = [pool.rule];
      const working = lab.work();
      await until(() => pool.replaced.length > 1, {
        timeoutMs: 60_000,
        what: "replacements that are refused",
      });
      await passOn(lab, pool.kept);
      await working;
      await lab.heal();
    },
  },
  {
    number: 37,
    name: "a payment and its replacement race: whichever is mined is booked once",
    setup: { workerEnv: QUICK_REPRICE },
    async run(lab) {
      const pool = new Vestibule(async ({ hash }) => ({ reply: { result: hash } }));
      lab.worker.node.rules = [pool.rule];
      const working = lab.work();
      await until(() => pool.replaced.length > 1, { timeoutMs: 60_000, what: "replacements" });
      lab.worker.node.rules = [];
      for (const { first: original, second } of pool.replaced) {
        const racing = lab.random.integer(2) === 0 ? [original, second] : [second, original];
        await passOn(lab, racing);
      }
      await passOn(lab, pool.kept);
      await working;
    },
  },
  {
    number: 38,
    name: "a mined payment whose receipt hides, longer than anybody's patience",
    async run(lab) {
      lab.worker.node.rules = [changing("no receipt", "eth_getTransactionReceipt", () => null)];
      const working = lab.work();
      await until(async () => /frozen/.test(await lab.readiness(lab.worker)), {
        timeoutMs: HIDDEN_MS,
        what: "signing freezes",
      });
      await lab.heal();
      const released = async () => (await lab.command("withdrawals", "release")).code === 0;
      await until(released, { timeoutMs: 60_000, what: "signing is released" });
      await working;
    },
  },
  {
    number: 41,
    name: "the gas price is a thousand times what it was, then a billion times",
    async run(lab) {
      for (const factor of [1_000n, 1_000_000_000n]) {
        lab.worker.node.rules = [
          changing("gas price", "eth_gasPrice", (price) => {
            return `0x${(BigInt(String(price)) * factor).toString(16)}`;
          }),
        ];
        const working = lab.work();
        await until(() => lab.worker.node.hitsOf("gas price") > 0, {
          timeoutMs: 60_000,
          what: "a price out of all bounds is told",
        });
        await pause(2_000);
        await lab.heal();
        await working;
      }
    },
  },
];
