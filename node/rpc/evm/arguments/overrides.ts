/** State and block overrides of a client (go-ethereum's override sets), parsed. */
import { type Address, toChecksumAddress } from "../../../../chain/address.js";
import type { Hash32 } from "../../../../chain/hex.js";
import type { BlockOverrides, StateOverrides } from "../../../execution/calls/call-port.js";
import { RpcFault } from "../errors.js";
import {
  optionalField,
  ParamError,
  parseAddressParam,
  parseBytes,
  parseHashParam,
  parseObject,
  parseSlot,
  parseUint256,
  parseUint64,
} from "../params.js";

/** Accounts in a state override; calls are answered in workers, the message is copied there. */
const MAX_OVERRIDES = 1_024;

/**
 * Storage slots of all accounts that one request overrides. They are read, and copied for a worker,
 * at a stretch: 16 times as many, which a body has room for, took half a second.
 */
const MAX_OVERRIDE_SLOTS = 16_384;

type AccountOverride = NonNullable<ReturnType<StateOverrides["get"]>>;

/** Room for the storage slots that one request overrides. */
export class SlotRoom {
  private left = MAX_OVERRIDE_SLOTS;

  /** Takes room for so many slots. Throws ParamError. */
  take(count: number): void {
    this.left -= count;
    if (this.left >= 0) return;
    throw new ParamError(
      `at most ${MAX_OVERRIDE_SLOTS} storage slots are allowed in all overrides`,
    );
  }
}

/** go-ethereum's state override set, the only one of its request. Throws ParamError. */
export function parseStateOverrides(value: unknown): StateOverrides {
  return parseOverrides(value, new SlotRoom());
}

/**
 * One of several state override sets of a request. Throws ParamError.
 * @param room one for all of them
 */
export function parseOverrides(value: unknown, room: SlotRoom): StateOverrides {
  const entries = Object.entries(parseObject(value));
  if (entries.length > MAX_OVERRIDES) {
    throw new ParamError(`at most ${MAX_OVERRIDES} entries are allowed`);
  }
  const overrides = new Map<Address, AccountOverride>();
  for (const [key, item] of entries) {
    const address = parseAddressParam(key);
    overrides.set(address, parseOverride(address, item, room));
  }
  return overrides;
}

function parseOverride(address: Address, value: unknown, room: SlotRoom): AccountOverride {
  const fields = parseObject(value);
  const parseSlots = (slots: unknown) => parseSlotMap(slots, room);
  const state = optionalField(fields, "state", parseSlots);
  const stateDiff = optionalField(fields, "stateDiff", parseSlots);
  if (state !== undefined && stateDiff !== undefined) {
    const who = toChecksumAddress(address);
    throw new RpcFault("SERVER_ERROR", `account ${who} has both 'state' and 'stateDiff'`);
  }
  return {
    balanceAtoken: optionalField(fields, "balance", parseUint256),
    nonce: optionalField(fields, "nonce", parseUint64),
    code: optionalField(fields, "code", parseBytes),
    state,
    stateDiff,
    movePrecompileTo: optionalField(fields, "movePrecompileToAddress", parseAddressParam),
  };
}

function parseSlotMap(value: unknown, room: SlotRoom): ReadonlyMap<Hash32, bigint> {
  const slots = Object.entries(parseObject(value));
  room.take(slots.length);
  return new Map(slots.map(([slot, word]) => [parseSlot(slot), BigInt(parseSlot(word))]));
}

type Parse = (value: unknown) => BlockOverrides;

/** What can be overridden of a block, under go-ethereum's names, its former ones included. */
const BLOCK_FIELDS: ReadonlyMap<string, Parse> = new Map<string, Parse>([
  ["number", (value) => ({ height: parseCount(value) })],
  ["time", (value) => ({ timestampSeconds: parseCount(value) })],
  ["gasLimit", (value) => ({ gasLimit: parseUint64(value) })],
  ["feeRecipient", (value) => ({ coinbase: parseAddressParam(value) })],
  ["coinbase", (value) => ({ coinbase: parseAddressParam(value) })],
  ["prevRandao", (value) => ({ mixHash: parseRandao(value) })],
  ["random", (value) => ({ mixHash: parseRandao(value) })],
  ["baseFeePerGas", (value) => ({ baseFeeAtoken: parseUint256(value) })],
  ["baseFee", (value) => ({ baseFeeAtoken: parseUint256(value) })],
  ["blobBaseFee", (value) => ({ blobBaseFeeAtoken: parseUint256(value) })],
  ["difficulty", withoutEffect],
]);

/** Members of go-ethereum's set for which this chain has nothing. */
const UNSUPPORTED_FIELDS: ReadonlySet<string> = new Set(["beaconRoot", "withdrawals"]);

/**
 * go-ethereum's block override set. A member that is not known is refused: without it the answer
 * would be about another block than the client means. Throws ParamError.
 */
export function parseBlockOverrides(value: unknown): BlockOverrides {
  let overrides: BlockOverrides = {};
  const fields = parseObject(value);
  for (const name of Object.keys(fields)) {
    const parse = BLOCK_FIELDS.get(name);
    if (parse !== undefined) {
      overrides = { ...overrides, ...optionalField(fields, name, parse) };
    } else if (UNSUPPORTED_FIELDS.has(name)) {
      refuseUnlessEmpty(name, fields[name]);
    } else {
      throw new ParamError(`unknown block override "${name.slice(0, 100)}"`);
    }
  }
  return overrides;
}

/** Difficulty: nothing has had one since the merge. */
function withoutEffect(value: unknown): BlockOverrides {
  parseUint256(value);
  return {};
}

function refuseUnlessEmpty(name: string, value: unknown): void {
  const isEmpty = value === null || (Array.isArray(value) && value.length === 0);
  if (isEmpty) return;
  throw new RpcFault(
    "SERVER_ERROR",
    `block override "${name}" is not supported for this RPC method`,
  );
}

/** Numbers and times of blocks are counted exactly. */
function parseCount(value: unknown): number {
  const count = parseUint64(value);
  if (count > BigInt(Number.MAX_SAFE_INTEGER)) throw new ParamError("number too large");
  return Number(count);
}

/** 32 bytes; execution-apis also writes it as a quantity. */
function parseRandao(value: unknown): Hash32 {
  return typeof value === "string" && value.length === 66
    ? parseHashParam(value)
    : parseSlot(value);
}
