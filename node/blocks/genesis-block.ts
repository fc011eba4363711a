/** Block 0: the genesis accounts as state, and their balances as journalled GENESIS changes. */
import type { Address } from "../../chain/address.js";
import { ZERO_ADDRESS } from "../../chain/address.js";
import type { BalanceChange } from "../../chain/balance-change.js";
import { type Block, hashHeader } from "../../chain/block.js";
import { dataHashOf } from "../../chain/consensus/consensus-block.js";
import { keccak256Hex } from "../../chain/hashes.js";
import {
  bigintToBytes,
  EMPTY_CODE_HASH,
  EMPTY_TRIE_ROOT,
  type Hash32,
  hexToBytes,
  ZERO_HASH,
} from "../../chain/hex.js";
import { EMPTY_BLOOM } from "../../chain/receipt.js";
import type { Atoken } from "../../chain/units.js";
import type { Supply } from "../view/chain-view.js";
import { FIRST_APP_VERSION } from "../settings/app-version.js";
import { encodeGenesis, type Genesis } from "../settings/genesis.js";
import { type AccountRecord, EMPTY_ACCOUNT } from "../store/account-record.js";
import { computeRoots } from "../state/state-root.js";
import { emptyTrieReader } from "../state/trie.js";
import { JournaledState } from "../state/journaled-state.js";
import { ZERO_VALUE } from "../store/state-reader.js";
import type { ModuleContext } from "../modules/module-context.js";
import { beginModules } from "../modules/modules.js";
import type { ExecutedBlock } from "../store/block-commit.js";
import { journalOf, moduleValues, nextSupply } from "./block-executor.js";

const NO_SUPPLY: Supply = { totalAtoken: 0n, mintedAtoken: 0n, burnedAtoken: 0n };

/** Makes block 0 of a genesis; the same genesis always gives the same block. */
export function createGenesisBlock(genesis: Genesis): ExecutedBlock {
  const accounts = new Map<Address, AccountRecord | undefined>();
  const storage = new Map<Address, Map<Hash32, Uint8Array>>();
  const codes = new Map<Hash32, Uint8Array>();
  const changes: BalanceChange[] = [];
  for (const [address, entry] of genesis.alloc) {
    const code = entry.code === undefined ? undefined : hexToBytes(entry.code);
    const codeHash = code === undefined ? EMPTY_CODE_HASH : keccak256Hex(code);
    if (code !== undefined) codes.set(codeHash, code);
    const { balanceAtoken } = entry;
    accounts.set(address, { ...EMPTY_ACCOUNT, balanceAtoken, codeHash });
    if (entry.storage.size > 0) {
      const slots = [...entry.storage].map(
        ([slot, value]) => [slot, bigintToBytes(value)] as const,
      );
      storage.set(address, new Map(slots));
    }
    if (balanceAtoken > 0n) changes.push(genesisChange(address, balanceAtoken));
  }
  const modules = genesisModules(genesis, accounts);
  for (const [address, { after }] of modules.state.changedAccounts()) accounts.set(address, after);
  for (const [address, slots] of modules.state.changedStorage()) storage.set(address, slots);
  for (const [codeHash, code] of modules.state.newCodes()) codes.set(codeHash, code);
  for (const change of modules.changes) changes.push(change);
  const journal = journalOf(0, [], changes);
  const supply = nextSupply(NO_SUPPLY, journal);
  const roots = computeRoots(emptyTrieReader, accounts, storage, moduleValues(supply));
  const block = genesisHeader(genesis, roots);
  return {
    committed: { block, receipts: [], journal },
    changes: { height: 0, accounts: roots.accounts, storage, codes },
    trieWrites: roots.trieWrites,
    supply,
    sdkHashes: [],
    computeNs: 0,
  };
}

/** State of the modules over the accounts of the genesis; stake comes into being with them. */
function genesisModules(
  genesis: Genesis,
  accounts: ReadonlyMap<Address, AccountRecord | undefined>,
): { readonly state: JournaledState; readonly changes: readonly BalanceChange[] } {
  const state = new JournaledState({
    account: (address) => accounts.get(address),
    code: () => ZERO_VALUE,
    storage: () => ZERO_VALUE,
  });
  const changes: BalanceChange[] = [];
  const context: ModuleContext = {
    appVersion: genesis.appVersion ?? FIRST_APP_VERSION,
    state,
    height: 0,
    timeMs: genesis.genesisTimeMs,
    validatorsPool: genesis.params.validatorsPool,
    emit: () => undefined,
    isBlocked: () => false,
    moveCoins: (_reason, _from, to, amountAtoken) => {
      if (to === undefined) throw new RangeError("a genesis burns nothing");
      state.moveBalance(to, amountAtoken);
      changes.push(genesisChange(to, amountAtoken));
    },
  };
  beginModules(context, genesis);
  return { state, changes };
}

function genesisChange(to: Address, amountAtoken: Atoken): BalanceChange {
  return {
    reason: "GENESIS",
    from: undefined,
    to,
    amountAtoken,
    effective: true,
    tracePath: undefined,
  };
}

function genesisHeader(genesis: Genesis, roots: { stateRoot: Hash32; moduleRoot: Hash32 }): Block {
  const header = {
    parentHash: ZERO_HASH,
    coinbase: ZERO_ADDRESS,
    stateRoot: roots.stateRoot,
    transactionsRoot: EMPTY_TRIE_ROOT,
    receiptsRoot: EMPTY_TRIE_ROOT,
    logsBloom: EMPTY_BLOOM,
    height: 0,
    gasLimit: genesis.params.maxGas,
    gasUsed: 0n,
    timestampSeconds: Math.floor(genesis.genesisTimeMs / 1000),
    moduleRoot: roots.moduleRoot,
    // Commits block 0 to everything in the genesis: chain ids, parameters, validators.
    mixHash: keccak256Hex(Buffer.from(encodeGenesis(genesis), "utf8")),
  };
  const dataHash = dataHashOf([]);
  const { genesisTimeMs } = genesis;
  return { header, hash: hashHeader(header), timeMs: genesisTimeMs, transactions: [], dataHash };
}
