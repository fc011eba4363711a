/** A node that was made anew from a snapshot while sweeps were on their way: it has no receipts of them. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { WALLET } from "../../helpers/exchange/house.js";
import { TreasuryBench } from "./treasury-bench.js";

const { signal } = new AbortController();

let bench: TreasuryBench;

beforeAll(async () => {
  bench = await TreasuryBench.open();
  await bench.bench.mine([{ to: WALLET, value: 10n ** 18n }]);
  await bench.bench.caughtUp();
});
afterAll(() => bench.close());

it.each([
  { name: "the treasury goes on", isNew: false },
  { name: "the treasury starts anew", isNew: true },
])("freezes none, and ends them by one that has their receipts: $name", async ({ isNew }) => {
  const address = await bench.bench.register(`customer-${isNew}`);
  await bench.bench.mine([{ to: address, value: 10n ** 16n }]);
  await bench.mine();
  const { node } = bench;
  let isRestored = false;
  const receipts: typeof node.receipts = async (hashes, options) => {
    const answer = await node.receipts(hashes, options);
    return isRestored ? { ...answer, byHash: new Map() } : answer;
  };
  const head = () => bench.bench.chain.chain.view.head().height;
  const oldestHeight = async () => (isRestored ? head() : 0);
  const raws = new Set<string>();
  const send: typeof node.send = (sent, options) => {
    for (const raw of sent) raws.add(raw);
    return node.send(sent, options);
  };
  const open = () => bench.sweeper({ node: { ...node, receipts, oldestHeight, send } });
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
  expect(await stateOf()).toBe("sent");
  isRestored = false;
  await bench.bench.watch();
  await bench.bench.caughtUp();
  expect(await stateOf()).toBe("settled");
});
