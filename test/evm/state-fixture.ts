/** Ethereum's state tests (ethereum/tests, GeneralStateTests) as typed cases. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Address, parseAddress } from "../../chain/address.js";
import { type Hash32, parseHash32, parseHexBytes } from "../../chain/hex.js";
import type { AccessListEntry } from "../../chain/transaction.js";

/** The fork whose results count (D19). */
const FORK = "Cancun";

/** An account before the transaction. */
export interface FixtureAccount {
  readonly nonce: bigint;
  readonly balance: bigint;
  readonly code: Uint8Array;
  /** Key and value of each slot that is not zero. */
  readonly storage: ReadonlyMap<bigint, bigint>;
}

/** The block that the transaction is alone in. */
export interface FixtureBlock {
  readonly coinbase: Address;
  readonly gasLimit: bigint;
  readonly height: number;
  readonly timestampSeconds: number;
  readonly random: Hash32;
  readonly baseFee: bigint;
  readonly excessBlobGas: bigint;
}

/** The transaction of one case. */
export interface FixtureTransaction {
  readonly from: Address;
  readonly to: Address | undefined;
  readonly nonce: bigint;
  readonly gasLimit: bigint;
  readonly value: bigint;
  readonly data: Uint8Array;
  readonly accessList: readonly AccessListEntry[];
  /** Of type 2 (and 3) both differ; of the others they are the price. */
  readonly maxFee: bigint;
  readonly maxPriorityFee: bigint;
  /** Of type 3. */
  readonly blobHashes: readonly Hash32[] | undefined;
}

/** One case: a state, a transaction, and what must come of them. */
export interface StateCase {
  /** Folder, file, name and the indexes of data, gas and value. */
  readonly name: string;
  readonly block: FixtureBlock;
  readonly accounts: ReadonlyMap<Address, FixtureAccount>;
  readonly transaction: FixtureTransaction;
  readonly stateRoot: Hash32;
  readonly logsHash: Hash32;
  /** The transaction must not be included; why, in the fixture's words. */
  readonly exception: string | undefined;
}

/** JSON of unknown shape: the fixtures are untrusted until read. */
type Json = Readonly<Record<string, unknown>>;

/** Files below a folder that end in `.json`, in order of their names. */
export function fixtureFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".json"))
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted();
}

/** The cases of one file for the fork. Throws with the field that is not as the format says. */
export function readCases(path: string, label: string): StateCase[] {
  const file = objectOf(JSON.parse(readFileSync(path, "utf8")), path);
  return Object.entries(file).flatMap(([name, entry]) => {
    // The folder may hold other kinds of tests, too: of transactions, RLP, tries.
    if (!isStateTest(entry)) return [];
    const test = objectOf(entry, name);
    const post = objectOf(test["post"], "post")[FORK];
    if (!Array.isArray(post)) return [];
    const block = blockOf(objectOf(test["env"], "env"));
    const accounts = accountsOf(objectOf(test["pre"], "pre"));
    const transaction = objectOf(test["transaction"], "transaction");
    return post.map((result): StateCase => {
      const expected = objectOf(result, "post");
      const indexes = objectOf(expected["indexes"], "indexes");
      const at = (key: string): number => Number(indexes[key]);
      const exception = expected["expectException"];
      return {
        name: `${label} ${name} d${at("data")} g${at("gas")} v${at("value")}`,
        block,
        accounts,
        transaction: transactionOf(transaction, {
          data: at("data"),
          gas: at("gas"),
          value: at("value"),
        }),
        stateRoot: parseHash32(expected["hash"]),
        logsHash: parseHash32(expected["logs"]),
        exception: typeof exception === "string" ? exception : undefined,
      };
    });
  });
}

function isStateTest(entry: unknown): boolean {
  return typeof entry === "object" && entry !== null && "post" in entry && "transaction" in entry;
}

function blockOf(env: Json): FixtureBlock {
  return {
    coinbase: parseAddress(textOf(env, "currentCoinbase")),
    gasLimit: numberOf(env, "currentGasLimit"),
    height: Number(numberOf(env, "currentNumber")),
    timestampSeconds: Number(numberOf(env, "currentTimestamp")),
    random: parseHash32(textOf(env, "currentRandom")),
    baseFee: numberOf(env, "currentBaseFee"),
    excessBlobGas:
      env["currentExcessBlobGas"] === undefined ? 0n : numberOf(env, "currentExcessBlobGas"),
  };
}

function accountsOf(pre: Json): Map<Address, FixtureAccount> {
  return new Map(
    Object.entries(pre).map(([address, entry]) => {
      const account = objectOf(entry, address);
      const storage = Object.entries(objectOf(account["storage"], "storage")).map(
        ([key, value]) => [BigInt(key), BigInt(String(value))] as const,
      );
      return [
        parseAddress(address),
        {
          nonce: numberOf(account, "nonce"),
          balance: numberOf(account, "balance"),
          code: parseHexBytes(account["code"]),
          storage: new Map(storage.filter(([, value]) => value !== 0n)),
        },
      ];
    }),
  );
}

function transactionOf(
  transaction: Json,
  at: { readonly data: number; readonly gas: number; readonly value: number },
): FixtureTransaction {
  const isPriced = transaction["gasPrice"] !== undefined;
  const to = textOf(transaction, "to");
  const blobHashes = transaction["blobVersionedHashes"];
  return {
    from: parseAddress(textOf(transaction, "sender")),
    to: to === "" ? undefined : parseAddress(to),
    nonce: numberOf(transaction, "nonce"),
    gasLimit: BigInt(itemOf(transaction, "gasLimit", at.gas)),
    value: BigInt(itemOf(transaction, "value", at.value).replace("0x:bigint ", "")),
    data: parseHexBytes(itemOf(transaction, "data", at.data)),
    accessList: accessListOf(transaction["accessLists"], at.data),
    maxFee: numberOf(transaction, isPriced ? "gasPrice" : "maxFeePerGas"),
    maxPriorityFee: numberOf(transaction, isPriced ? "gasPrice" : "maxPriorityFeePerGas"),
    blobHashes: Array.isArray(blobHashes) ? blobHashes.map((hash) => parseHash32(hash)) : undefined,
  };
}

function accessListOf(lists: unknown, index: number): AccessListEntry[] {
  const list: unknown = Array.isArray(lists) ? lists[index] : undefined;
  if (!Array.isArray(list)) return [];
  return list.map((item) => {
    const entry = objectOf(item, "accessLists");
    const keys = entry["storageKeys"];
    return {
      address: parseAddress(textOf(entry, "address")),
      storageKeys: Array.isArray(keys) ? keys.map((key) => parseHash32(key)) : [],
    };
  });
}

function objectOf(value: unknown, what: string): Json {
  if (typeof value !== "object" || value === null) throw new TypeError(`${what} is no object`);
  return value as Json;
}

function textOf(object: Json, key: string): string {
  const value = object[key];
  if (typeof value !== "string") throw new TypeError(`${key} is no text`);
  return value;
}

function numberOf(object: Json, key: string): bigint {
  return BigInt(textOf(object, key));
}

function itemOf(object: Json, key: string, index: number): string {
  const list = object[key];
  const item: unknown = Array.isArray(list) ? list[index] : undefined;
  if (typeof item !== "string") throw new TypeError(`${key}[${index}] is no text`);
  return item;
}
