/**
 * Rows of a large state, of execution and commit alone: what blocks of transfers and of slots cost
 * with a million accounts and a million slots, beside what they cost with what one block of each has
 * made. Processor time of all threads, as in the weights. What a node holds in all is in
 * `rows/large-state-rows.ts`.
 */
import type { BlockTransaction } from "../../../chain/block.js";
import { type BenchRow, formatFigure } from "../report.js";
import { createSenders, type Sender } from "../senders.js";
import type { ExecutionChain } from "../../helpers/chains/execution-chain.js";
import {
  type Filling,
  openChain,
  SENDERS,
  signed,
  timeBlock,
  TRANSFER_GAS,
  TURNS_GAS,
  turnsPayment,
} from "./blocks.js";
import { addressOf, COMMIT_CASES } from "./cases.js";

/** Names of the rows here, for `--only`. */
export const COMMIT_STATE_ROWS = ["commit-state"] as const;

/** What the rows are run with. */
export interface CommitStateOptions {
  readonly quick: boolean;
  readonly say: (line: string) => void;
}

/** Accounts and slots of the large state. */
const ITEMS = { quick: 100_000, full: 1_000_000 };

/** Timed blocks of each kind, behind one that is not. */
const TIMED_BLOCKS = { quick: 2, full: 4 };

/** Blocks between two words of progress. */
const BLOCKS_PER_WORD = 10;

/** Accounts and slots are numbered from here. */
const FIRST_ITEM = 2 ** 40;

/** Turns of each transaction of slots, and gas of one, where the slot is new. */
const SLOT_GAS = 22_500;
const SLOTS_PER_TRANSACTION = Math.floor(TURNS_GAS / SLOT_GAS);

/** The case whose contract has the slots. */
const SLOT_CASE = COMMIT_CASES.findIndex(({ name }) => name === "SSTORE, slots that are there");

/** Accounts, or slots of one contract: blocks make the next ones, or change some that are there. */
interface Kind {
  readonly name: string;
  readonly unit: string;
  /** Items that were made so far. */
  made: number;
  readonly itemsPerTransaction: number;
  readonly grow: Filling;
  readonly change: Filling;
}

/** Runs the rows, over one chain. */
export async function runCommitStateRows(options: CommitStateOptions): Promise<BenchRow[]> {
  const { quick, say } = options;
  const items = quick ? ITEMS.quick : ITEMS.full;
  const blocks = quick ? TIMED_BLOCKS.quick : TIMED_BLOCKS.full;
  const people = ["who grows it", "who changes it"].map((label) => ({
    many: createSenders(SENDERS, `large state, ${label}`),
    one: createSenders(1, `large state, slots, ${label}`),
  }));
  const chain = await openChain(people.flatMap(({ many, one }) => [...many, ...one]));
  try {
    const kinds = [
      accountKind(people.map(({ many }) => many)),
      slotKind(people.map(({ one }) => one)),
    ];
    const small: number[] = [];
    for (const kind of kinds) {
      await growTo(chain, kind, 1, say);
      small.push(await perSecond(chain, kind, blocks));
    }
    const smallSizes = kinds.map(({ made }) => made);
    for (const kind of kinds) await growTo(chain, kind, items, say);
    const rows: BenchRow[] = [];
    for (const [index, kind] of kinds.entries()) {
      const peer = small[index];
      if (peer === undefined) throw new Error(`${kind.name} were not timed`);
      const ours = await perSecond(chain, kind, blocks);
      say(`${kind.name}: ${formatFigure(ours)}, and ${formatFigure(peer)} before`);
      rows.push({
        title: `${kind.name} of ${formatFigure(kind.made)} there are`,
        unit: kind.unit,
        ours,
        peer,
        peerName: `of ${formatFigure(smallSizes[index] ?? 0)}`,
        details: [`memory of this process: ${Math.round(process.memoryUsage().rss / 2 ** 20)} MiB`],
      });
    }
    return rows;
  } finally {
    await chain.close();
  }
}

/** Makes blocks until there are so many; one block at least. */
async function growTo(
  chain: ExecutionChain,
  kind: Kind,
  items: number,
  say: (line: string) => void,
): Promise<void> {
  for (let block = 0; kind.made < items; block += 1) {
    const { transactions } = await timeBlock(chain, kind.grow, block);
    kind.made += transactions * kind.itemsPerTransaction;
    if (block % BLOCKS_PER_WORD === BLOCKS_PER_WORD - 1) {
      say(`${formatFigure(kind.made)} ${kind.name} made`);
    }
  }
}

/** Items changed in a second of processor time. */
async function perSecond(chain: ExecutionChain, kind: Kind, blocks: number): Promise<number> {
  let [items, cpuMs] = [0, 0];
  // The first also takes what was made ready for a state of another size.
  for (let block = 0; block <= blocks; block += 1) {
    const timed = await timeBlock(chain, kind.change, block);
    if (block === 0) continue;
    items += timed.transactions * kind.itemsPerTransaction;
    cpuMs += timed.cpuMs;
  }
  return items / (cpuMs / 1_000);
}

/** Whose transactions make items, and whose change them: what is left of either keeps its nonces. */
type People = readonly (readonly Sender[])[];

function accountKind(people: People): Kind {
  const pay = (sender: Sender, item: number) =>
    signed(sender, { to: addressOf(FIRST_ITEM + item), gasLimit: TRANSFER_GAS });
  return kindOf({
    name: "accounts, transfers to some",
    unit: "transfers per s of processor time",
    itemsPerTransaction: 1,
    gas: Number(TRANSFER_GAS),
    people,
    transaction: pay,
  });
}

function slotKind(people: People): Kind {
  // Another value each time, so that what is written is always a change.
  let value = 1;
  return kindOf({
    name: "slots, changes of some",
    unit: "slots per s of processor time",
    itemsPerTransaction: SLOTS_PER_TRANSACTION,
    gas: SLOTS_PER_TRANSACTION * SLOT_GAS,
    people,
    transaction: (sender, item) => {
      const from = FIRST_ITEM + item;
      value += 1;
      const turns = { from, to: from + SLOTS_PER_TRANSACTION, value };
      return signed(sender, turnsPayment(SLOT_CASE, turns));
    },
  });
}

function kindOf(plan: {
  readonly name: string;
  readonly unit: string;
  readonly itemsPerTransaction: number;
  /** Of a transaction. */
  readonly gas: number;
  readonly people: People;
  /** From an item on. */
  readonly transaction: (sender: Sender, item: number) => BlockTransaction;
}): Kind {
  const { name, unit, itemsPerTransaction, gas, people, transaction } = plan;
  const [makers = [], changers = []] = people;
  const filling = (senders: readonly Sender[], item: () => number): Filling => {
    let sent = 0;
    const next = () => {
      const sender = senders[sent++ % senders.length];
      if (sender === undefined) throw new Error("nobody sends");
      return transaction(sender, item());
    };
    return { name, gas, next, grows: false, ready: [] };
  };
  let [planned, changed] = [0, 0];
  // Round all items: each block has as many different ones, whatever their number, and they are cold.
  const nextChanged = (): number => {
    if (changed + itemsPerTransaction > kind.made) changed = 0;
    return (changed += itemsPerTransaction) - itemsPerTransaction;
  };
  const kind: Kind = {
    name,
    unit,
    made: 0,
    itemsPerTransaction,
    grow: filling(makers, () => (planned += itemsPerTransaction) - itemsPerTransaction),
    change: filling(changers, nextChanged),
  };
  return kind;
}
