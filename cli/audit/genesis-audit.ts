/**
 * Block 0 held against the genesis file: the state that the file's accounts make, the supply and the
 * header's commitment to everything else in the file. Every later block is executed on the state
 * before it, so that whatever lies in block 0 would be in all of them.
 */
import { MerklePatriciaTrie } from "@ethereumjs/mpt";
import { Account } from "@ethereumjs/util";
import { type Address, addressToBytes, parseAddress } from "../../chain/address.js";
import { encodeRlp } from "../../chain/encoding/rlp-writer.js";
import { keccak256, keccak256Hex } from "../../chain/hashes.js";
import {
  bigintToBytes,
  bytesToHash32,
  EMPTY_TRIE_ROOT,
  type Hash32,
  hexToBytes,
  ZERO_HASH,
} from "../../chain/hex.js";
import { ATOKEN_PER_TOKEN, type Atoken } from "../../chain/units.js";
import { encodeGenesis, type Genesis, type GenesisAccount } from "../../node/settings/genesis.js";
import type { AuditNode } from "./audit-node.js";
import {
  type AuditedHeader,
  createChainCommon,
  MODULE_ACCOUNTS,
  supplyRoot,
  type SupplyTotals,
  toLibraryAddress,
} from "./chain-rules.js";
import { type Difference, firstDifference } from "./errors.js";
import { ProvenState } from "./proven-state.js";

/** Where stake lies. */
const STAKING = parseAddress("0x0000000000000000000000000000000000000800");

/** Contracts of the chain itself on chains with modules; the first has no state. */
const SYSTEM_ACCOUNTS: readonly Address[] = [
  parseAddress("0x0000000000000000000000000000000000000400"),
  ...MODULE_ACCOUNTS,
];

/** Hash of the code that they have: `PUSH1 0 PUSH1 0 REVERT`. */
const SYSTEM_CODE_HASH = keccak256(hexToBytes("0x60006000fd"));

/** What block 0 is held against, and the node that says what it is. */
export interface GenesisAuditOptions {
  readonly node: AuditNode;
  readonly genesis: Genesis;
  readonly signal: AbortSignal;
}

/** Supply of block 0: what the accounts have, and the stake of validators with operators. */
export function genesisSupply({
  alloc,
  validators,
}: Pick<Genesis, "alloc" | "validators">): SupplyTotals {
  let mintedAtoken = 0n;
  for (const { balanceAtoken } of alloc.values()) mintedAtoken += balanceAtoken;
  return { mintedAtoken: mintedAtoken + stakeAtoken(validators), burnedAtoken: 0n };
}

/**
 * The first field of block 0's header that is not the genesis file's. The storage of the modules'
 * accounts is taken as the state root proves it, as in every later block; their coins are not.
 * @throws STATE_UNPROVEN and the client's errors, on chains with modules
 */
export async function genesisDifference(
  header: AuditedHeader,
  options: GenesisAuditOptions,
): Promise<Difference | undefined> {
  const { genesis } = options;
  const place = { height: header.height, transaction: undefined };
  const file = keccak256Hex(Buffer.from(encodeGenesis(genesis), "utf8"));
  const seconds = BigInt(Math.floor(genesis.genesisTimeMs / 1_000));
  return firstDifference(place, [
    { field: "height", chain: header.height, audit: 0 },
    { field: "parentHash", chain: header.parentHash, audit: ZERO_HASH },
    { field: "stateRoot", chain: header.stateRoot, audit: await stateRootOf(header, options) },
    {
      field: "extraData",
      chain: header.moduleRoot,
      audit: await supplyRoot(genesisSupply(genesis)),
    },
    { field: "transactionsRoot", chain: header.transactionsRoot, audit: EMPTY_TRIE_ROOT },
    { field: "receiptsRoot", chain: header.receiptsRoot, audit: EMPTY_TRIE_ROOT },
    { field: "timestamp", chain: header.timestampSeconds, audit: seconds },
    { field: "gasLimit", chain: header.gasLimit, audit: genesis.params.maxGas },
    { field: "gasUsed", chain: header.gasUsed, audit: 0n },
    { field: "mixHash", chain: bytesToHash32(header.mixHash), audit: file },
  ]);
}

function stakeAtoken(validators: Genesis["validators"]): Atoken {
  return validators
    .filter(({ operator }) => operator !== undefined)
    .reduce((sum, { power }) => sum + BigInt(power) * ATOKEN_PER_TOKEN, 0n);
}

async function stateRootOf(header: AuditedHeader, options: GenesisAuditOptions): Promise<Hash32> {
  const { alloc, modules } = options.genesis;
  const accounts = new Map<Address, Account>();
  for (const [address, entry] of alloc) {
    options.signal.throwIfAborted();
    accounts.set(address, await accountOf(entry));
  }
  if (modules !== undefined) await addSystemAccounts(accounts, header, options);
  const trie = new MerklePatriciaTrie({ useKeyHashing: true });
  for (const [address, account] of accounts) {
    options.signal.throwIfAborted();
    await trie.put(addressToBytes(address), account.serialize());
  }
  return bytesToHash32(trie.root());
}

async function accountOf({ balanceAtoken, code, storage }: GenesisAccount): Promise<Account> {
  const trie = new MerklePatriciaTrie({ useKeyHashing: true });
  for (const [slot, value] of storage) {
    if (value !== 0n) await trie.put(hexToBytes(slot), encodeRlp(bigintToBytes(value)));
  }
  const codeHash = code === undefined ? undefined : keccak256(hexToBytes(code));
  return new Account(0n, balanceAtoken, trie.root(), codeHash);
}

/** The chain's own contracts: their code is known, their storage is the modules' state. */
async function addSystemAccounts(
  accounts: Map<Address, Account>,
  { height, stateRoot }: AuditedHeader,
  { node, genesis, signal }: GenesisAuditOptions,
): Promise<void> {
  const state = new ProvenState(node, { common: createChainCommon(genesis.evmChainId), signal });
  await state.startFrom(height, stateRoot);
  for (const address of SYSTEM_ACCOUNTS) {
    const proven = await state.getAccount(toLibraryAddress(address));
    if (proven === undefined || !isSystemCode(proven.codeHash)) continue;
    const balanceAtoken = accounts.get(address)?.balance ?? 0n;
    const stake = address === STAKING ? stakeAtoken(genesis.validators) : 0n;
    const { storageRoot } = proven;
    accounts.set(address, new Account(0n, balanceAtoken + stake, storageRoot, SYSTEM_CODE_HASH));
  }
}

function isSystemCode(codeHash: Uint8Array): boolean {
  return Buffer.from(codeHash).equals(SYSTEM_CODE_HASH);
}
