/** Sweeps and nodes that do not keep all blocks: made anew from a snapshot, or pruned. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { WALLET } from "../../../helpers/exchange/house.js";
import { silentLog } from "../../../helpers/services/ledger.js";
import { TreasuryBench } from "../treasury-bench.js";

const { signal } = new AbortController();

let bench: TreasuryBench;

beforeAll(async () => {
  bench = await TreasuryBench.open();
  await bench.bench.mine([{ to: WALLET, value: 10n ** 18n }]);
  await bench.bench.caughtUp();
});
afterAll(() => bench.close());

/** A sweep that was mined while the watcher stood still, and a treasury whose node has no receipt of it. */
async function lost({ keptSeconds, isNew }: { keptSeconds: number; isNew: boolean }) {
  const address = await bench.bench.register(`customer-${keptSeconds}-${isNew}`);
  await bench.bench.mine([{ to: address, value: 10n ** 16n }]);
  await bench.mine();
  const { node } = bench;
  let isRestored = false;
  const receipts: typeof node.receipts = async (hashes, options) => {
    const answer = await node.receipts(hashes, options);
    return isRestored ? { ...answer, byHash: new Map() } : answer;
  };
  const keptBlocks = async () => ({ oldestSeconds: 10_000 - keptSeconds, headSeconds: 10_000 });
  const raws = new Set<string>();
  const send: typeof node.send = (sent, options) => {
    for (const raw of sent) raws.add(raw);
    return node.send(sent, options);
  };
  const warned: string[] = [];
  const warn = (_fields: unknown, text?: string) => void warned.push(text ?? "");
  const log = { ...silentLog, warn };
  const open = () => bench.sweeper({ node: { ...node, receipts, keptBlocks, send }, log });
  const first = open();
  const stateOf = async () => (await bench.sweeps()).find((one) => one.address === address)?.state;
  for (let round = 0; round < 2; round += 1) await first.round(signal);
  expect(await stateOf()).toBe("sent");
  // The watcher, which ends sweeps, stands still as well.
  await bench.bench.stopWatching();
  await bench.bench.mine([], [...raws]);
  for (let block = 0; block < 3; block += 1) await bench.bench.mine([]);
  isRestored = true;
  const treasury = isNew ? open() : first;
  for (let round = 0; round < 4; round += 1) {
    bench.clock.ms += 3_000;
    await treasury.round(signal);
  }
  const state = await stateOf();
  isRestored = false;
  await bench.bench.watch();
  await bench.bench.caughtUp();
  return { state, ended: await stateOf(), told: warned.filter((text) => text.includes("sweeps")) };
}

it.each([
  { name: "the treasury goes on", isNew: false },
  { name: "the treasury starts anew", isNew: true },
])(
  "freezes none, says so once, and ends them by one that has its receipts: $name",
  async ({ isNew }) => {
    const { state, ended, told } = await lost({ keptSeconds: 6, isNew });
    expect([state, ended]).toEqual(["sent", "settled"]);
    expect(told).toEqual(["used nonces of sweeps cannot be explained"]);
  },
);

it.each([
  { name: "the treasury goes on", isNew: false },
  { name: "the treasury starts anew", isNew: true },
])("freezes where the node keeps the blocks since they were signed: $name", async ({ isNew }) => {
  const { state, told } = await lost({ keptSeconds: 3_600, isNew });
  expect(state).toBe("frozen");
  expect(told).toEqual([]);
});
