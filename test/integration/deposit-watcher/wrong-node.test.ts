/**
 * A balancer before two nodes, of which one has the same genesis and other blocks behind it: nothing that it
 * says of balances is believed, not even once.
 */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { AddressBook } from "../../../deposit-watcher/address-book.js";
import { TokenBook } from "../../../deposit-watcher/tokens/token-book.js";
import { listSightings } from "../../../ledger/assets/token-sightings.js";
import { readTokenStates } from "../../../ledger/assets/token-state.js";
import { openIncident } from "../../../ledger/incidents.js";
import { FakeChain, testAddress } from "../../helpers/chains/fake-chain.js";
import { stray } from "../../helpers/chains/stray-answers.js";
import { registerTestWallets, silentLog } from "../../helpers/services/ledger.js";
import { derivation, STRANGER, WatcherBench } from "../../helpers/services/watcher.js";
import { until } from "../../helpers/until.js";

const CONTRACT = testAddress(0x70c3);
const FURTHER_WALLET = testAddress(0x408);
const ENTRIES = [{ symbol: "GOLD", contractAddress: CONTRACT, decimals: 6 }];

let bench: WatcherBench;
let other: FakeChain;

beforeEach(async () => {
  bench = await WatcherBench.open();
  bench.chain.token = CONTRACT;
  other = new FakeChain("other");
  other.blocks[0] = { ...other.mine(), hash: bench.chain.genesisHash };
  // Taller at any time.
  for (let height = 1; height < 20; height += 1) other.mine();
});
afterEach(() => bench.close());

const asks = (...methods: readonly string[]) => ({
  isFit: (asked: readonly string[]) => asked.some((method) => methods.includes(method)),
});

const incident = () => openIncident(bench.ledger.database);

const goldState = async () => (await readTokenStates(bench.ledger.database)).get("GOLD");

const opened = () =>
  until(async () => (await goldState())?.isOpened === true, {
    timeoutMs: 20_000,
    what: "the token is opened",
  });

/** Stores the token. @returns what starts a watcher that follows it */
async function followGold() {
  const { node, ledger } = bench;
  const { database } = ledger;
  const tokens = await TokenBook.open({ database, node, log: silentLog }, ENTRIES);
  const book = new AddressBook(tokens.assets());
  return () => bench.start(undefined, undefined, undefined, { tokens, book });
}

describe("a token", () => {
  it("comes, and is credited, whatever the wrong node says of its balances and code", async () => {
    const { chain } = bench;
    const { address: to } = await bench.register("alice");
    const run = await followGold();
    const { faults } = run();
    await bench.caughtUp();
    await opened();
    const told = stray(chain, other, { count: 4, ...asks("eth_call", "eth_getStorageAt") });
    chain.mine([chain.tokenPayment(STRANGER, { from: STRANGER, to, units: 100n })]);
    chain.mine();
    await bench.caughtUp();
    expect(told.strayed).toBe(4);
    expect(await bench.deposits()).toEqual(["1-0-1000000000 alice credited 100"]);
    expect((await goldState())?.isPaused).toBe(false);
    const sightings = await listSightings(bench.ledger.database, { afterId: 0, limit: 10 });
    expect([sightings, await incident(), faults]).toEqual([[], undefined, []]);
  });

  it("was held before its first block: the opening has it", async () => {
    const { chain } = bench;
    const { address } = await bench.register("alice");
    chain.mine([chain.tokenPayment(STRANGER, { from: STRANGER, to: address, units: 70n })]);
    const first = bench.start();
    await bench.caughtUp();
    await first.stop();
    const run = await followGold();
    const told = stray(chain, other, { count: 3, ...asks("eth_call", "eth_getCode") });
    const { faults } = run();
    await opened();
    expect(told.strayed).toBe(3);
    expect(await bench.accountAtoken("liability:suspense")).toBe(-70n);
    expect([await incident(), faults]).toEqual([undefined, []]);
  });
});

it("has no part in the past of an address or of a wallet", async () => {
  const { chain } = bench;
  const later = derivation.addressAt(0);
  bench.pay([FURTHER_WALLET, 900n], [later, 5n]);
  const first = bench.start();
  await bench.caughtUp();
  await first.stop();
  const told = stray(chain, other, {
    count: 6,
    ...asks("eth_getBalance", "causeway_getAccountJournal"),
  });
  await registerTestWallets(bench.ledger.database, FURTHER_WALLET);
  expect((await bench.register("bob")).address).toBe(later);
  const again = bench.start();
  await bench.backfilled();
  await until(async () => (await bench.accountAtoken(`asset:wallet:${FURTHER_WALLET}`)) !== 0n, {
    timeoutMs: 10_000,
    what: "the wallet's past is booked",
  });
  expect(told.strayed).toBe(6);
  expect(await bench.accountAtoken(`asset:wallet:${FURTHER_WALLET}`)).toBe(900n);
  expect(await bench.deposits()).toEqual(["1-1-3 bob suspense 5"]);
  expect([await incident(), ...first.faults, ...again.faults]).toEqual([undefined]);
});

describe("a node without the state, one of several behind a balancer,", () => {
  const READS = ["eth_call", "eth_getCode", "eth_getStorageAt", "eth_getBalance"];

  /** The next exchanges that read state come to it, but for every third. */
  function prune(refusal: { readonly code: number; readonly message: string }) {
    const told = { refused: 0 };
    let [asked, isPruned] = [0, false];
    bench.chain.wireFault = (methods) => {
      const isRead = methods.some((method) => READS.includes(method));
      if (isRead) asked += 1;
      isPruned = isRead && asked < 10 && asked % 3 > 0;
      if (isPruned) told.refused += 1;
      return undefined;
    };
    bench.chain.override = (method) =>
      isPruned && READS.includes(method) ? { error: refusal } : undefined;
    return told;
  }

  it.each([
    [4444, "pruned history unavailable"],
    [-32000, "missing trie node 5f2a (path ) state 0x5f2a is not available"],
    [-32000, "header not found"],
    [-32001, "state not available"],
  ])("contradicts nothing: %i %s", async (code, message) => {
    const { chain } = bench;
    const { address: to } = await bench.register("alice");
    chain.mine([chain.tokenPayment(STRANGER, { from: STRANGER, to, units: 70n })]);
    const first = bench.start();
    await bench.caughtUp();
    await first.stop();
    const run = await followGold();
    const told = prune({ code, message });
    bench.secondNode = bench.node;
    const { faults } = run();
    await opened();
    for (let units = 1n; units < 4n; units += 1n) {
      chain.mine([chain.tokenPayment(STRANGER, { from: STRANGER, to, units })]);
    }
    chain.mine();
    await bench.caughtUp();
    await bench.register("bob");
    await bench.backfilled();
    expect(told.refused).toBeGreaterThan(5);
    expect((await goldState())?.isPaused).toBe(false);
    expect(await bench.deposits()).toHaveLength(3);
    expect(await bench.accountAtoken("liability:suspense")).toBe(-70n);
    // The one of before it was listed.
    const sightings = await listSightings(bench.ledger.database, { afterId: 0, limit: 10 });
    expect(sightings.map(({ reason }) => reason)).toEqual(["UNKNOWN_TOKEN"]);
    expect([await incident(), ...first.faults, ...faults]).toEqual([undefined]);
  });
});
