/** ABIs of many verified contracts, for a page of a transaction that all of them took part in. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { type Address, parseAddress } from "../../../../chain/address.js";
import { keccak256Hex } from "../../../../chain/hashes.js";
import { type Hex, hexToBytes } from "../../../../chain/hex.js";
import { type PageContext, verifiedAbis } from "../../../../explorer/pages/context.js";
import type { VerifiedContract } from "../../../../explorer/verification/verified-store.js";
import { VerifiedStore } from "../../../../explorer/verification/verified-store.js";
import { silentLog } from "../../../helpers/services/ledger.js";

const MIB = 1024 * 1024;
const CODE: Hex = "0x6001";
const { signal } = new AbortController();

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "faces-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const addressOf = (number: number): Address =>
  parseAddress(`0x${number.toString(16).padStart(40, "0")}`);

/** A contract with so many functions, and sources of so many characters. */
function contractOf(address: Address, functions: number, characters: number): VerifiedContract {
  const abi = Array.from({ length: functions }, (_, index) => ({
    type: "function",
    name: `of${index}`,
    inputs: [{ name: "amount", type: "uint256" }],
    outputs: [],
    stateMutability: "view",
  }));
  return {
    address,
    codeHash: keccak256Hex(hexToBytes(CODE)),
    match: {
      kind: "exact",
      immutables: [],
      libraries: [],
      chainHash: undefined,
      compiledHash: undefined,
    },
    compiler: "0.8.24",
    source: "a.sol",
    name: "A",
    abi,
    input: { sources: { "a.sol": { content: "x".repeat(characters) } }, settings: {} },
    creation: undefined,
    verifiedAtSeconds: 1,
  };
}

function write(contract: VerifiedContract): string {
  const file = path.join(folder, `${contract.address}.json`);
  writeFileSync(file, JSON.stringify({ form: 1, ...contract }));
  return file;
}

const open = () => VerifiedStore.open({ folder, maxBytes: 256 * MIB, log: silentLog });

function contextOf(store: VerifiedStore, codes: Readonly<Record<string, Hex>> = {}): PageContext {
  const getCode = (address: Address) => Promise.resolve(codes[address] ?? CODE);
  return { contracts: { store }, chain: { evm: { getCode } } } as unknown as PageContext;
}

it("are read once, however large the sources beside them, and kept without these", async () => {
  // More than is kept of whole contracts.
  const addresses = Array.from({ length: 12 }, (_, index) => addressOf(index + 1));
  const files = addresses.map((address) => write(contractOf(address, 20, 4 * MIB)));
  const context = contextOf(open());
  const names = async () =>
    [...(await verifiedAbis(context, addresses, signal))].map(([address, abi]) => [
      address,
      abi.length,
      abi.at(-1)?.signature,
    ]);
  const wanted = addresses.map((address) => [address, 20, "of19(uint256)"]);
  expect(await names()).toEqual(wanted);
  for (const file of files) rmSync(file);
  expect(await names()).toEqual(wanted);
});

it("are not used where they are larger than those of any contract of a person", async () => {
  const [large, small] = [addressOf(1), addressOf(2)];
  write(contractOf(large, 6_000, 10));
  write(contractOf(small, 3, 10));
  const store = open();
  const found = await verifiedAbis(contextOf(store), [large, small], signal);
  expect([...found.keys()]).toEqual([small]);
  // Its own pages have it.
  expect((await store.get(large))?.abi.length).toBe(6_000);
});

it("are those of the code that is there, and of the contract as it was verified last", async () => {
  const [first, second] = [addressOf(1), addressOf(2)];
  const store = open();
  await store.put(contractOf(first, 1, 10));
  await store.put(contractOf(second, 1, 10));
  const other = contextOf(store, { [second]: "0x6002" });
  expect([...(await verifiedAbis(other, [first, second, addressOf(3)], signal)).keys()]).toEqual([
    first,
  ]);
  const codeHash = keccak256Hex(hexToBytes("0x6002"));
  await store.put({ ...contractOf(second, 2, 10), codeHash });
  expect((await verifiedAbis(other, [second], signal)).get(second)?.length).toBe(2);
});
