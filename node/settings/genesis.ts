/** The genesis file: who holds what at block 0, and the parameters that no node may change. */
import { MAX_EVIDENCE_BYTES } from "../../chain/consensus/consensus-block.js";
import fs from "node:fs";
import { z } from "zod";
import { type Address, BURN_ADDRESS, parseAddress } from "../../chain/address.js";
import type { ConsensusParams } from "../../chain/consensus/consensus-params.js";
import { isAnybodysKey } from "../../chain/consensus/ed25519.js";
import { validatorAddress } from "../../chain/consensus/validator-set.js";
import { hasRepeatedField } from "../../chain/encoding/json-fields.js";
import { AppError, errorMessage } from "../../chain/errors.js";
import { type Hash32, type Hex, MAX_WORD, parseHash32, parseHex } from "../../chain/hex.js";
import {
  BLOCK_INTERVAL_BOUNDS_MS,
  BLOCK_INTERVAL_MS,
  NETWORKS,
  type NetworkName,
  SYSTEM_ADDRESSES,
} from "../../chain/networks.js";
import {
  NEWEST_WEIGHTS,
  WEIGHTS_VERSIONS,
  type WeightsVersion,
} from "../../chain/evm/compute-weights.js";
import type { TransactionLimits } from "../../chain/transaction-rules.js";
import { ATOKEN_PER_TOKEN, type Atoken } from "../../chain/units.js";
import { schemaFaultText } from "../../runtime/config/schema-faults.js";
import { FIRST_APP_VERSION, NEWEST_APP_VERSION } from "./app-version.js";
import { type ModuleParams, moduleParamTexts, parseModuleParams } from "./module-params.js";
import { vestingFault, type VestingSchedule, type VestingSchedules } from "./vesting.js";

/** Codes of faults in a genesis file. */
export type GenesisErrorCode = "GENESIS_INVALID";

/** A genesis file that cannot be used. */
export class GenesisError extends AppError<GenesisErrorCode> {}

/** An account of block 0. */
export interface GenesisAccount {
  readonly balanceAtoken: Atoken;
  readonly code: Hex | undefined;
  readonly storage: ReadonlyMap<Hash32, bigint>;
  /** Of an account whose coins become free with time. */
  readonly vesting?: VestingSchedule;
}

/** Consensus parameters (D21, D22). */
export interface ChainParams {
  readonly blockIntervalMs: number;
  /** Gas of a whole block. */
  readonly maxGas: bigint;
  /** The most gas that one transaction may name. */
  readonly maxTransactionGas: bigint;
  /** Version of the table of compute weights. */
  readonly computeWeights: WeightsVersion;
  /** Compute units of a whole block, and the most that one transaction may take: nanoseconds. */
  readonly maxComputeNs: number;
  readonly maxTransactionComputeNs: number;
  /** Bytes of all raw transactions of a block. */
  readonly maxBytes: number;
  /** Double signing is punished until it is older than both; CometBFT's limits where absent. */
  readonly evidenceMaxAgeBlocks?: number | undefined;
  readonly evidenceMaxAgeMs?: number | undefined;
  readonly feeCollector: Address;
  readonly treasury: Address;
  readonly validatorsPool: Address;
  readonly developmentFund: Address;
  readonly burnAddress: Address;
  /** Accounts of genesis with locked coins; absent where there are none. */
  readonly locks?: VestingSchedules;
}

/** What a single transaction of a chain is held against. */
export function transactionLimitsOf(
  chainId: bigint,
  { maxTransactionGas }: Pick<ChainParams, "maxTransactionGas">,
): TransactionLimits {
  return { chainId, maxTransactionGas };
}

/** A parsed genesis. */
export interface Genesis {
  readonly network: NetworkName;
  readonly evmChainId: bigint;
  readonly cosmosChainId: string;
  readonly genesisTimeMs: number;
  readonly params: ChainParams;
  readonly alloc: ReadonlyMap<Address, GenesisAccount>;
  /** Addresses of the validators; blocks name their proposer as coinbase. */
  readonly validators: readonly GenesisValidator[];
  /** Version of the rules that the chain begins with; absent: the first. Only with modules. */
  readonly appVersion?: number;
  /**
   * Parameters of the modules, on chains whose validators have operators and stake; undefined where
   * they have not: their set is fixed.
   */
  readonly modules?: ModuleParams;
}

/** A validator of block 0. */
export interface GenesisValidator {
  /** First 20 bytes of SHA-256 of the ed25519 key. */
  readonly address: Address;
  /** 32-byte ed25519 public key, base64. */
  readonly publicKey: string;
  /** Also its stake, TOKEN, where it has an operator. */
  readonly power: number;
  /** Account that owns the stake and acts for the validator. */
  readonly operator?: Address | undefined;
  /** Name for people, of a validator with an operator. */
  readonly moniker?: string | undefined;
}

/** Gas of a block (D21). */
const DEFAULT_BLOCK_MAX_GAS = 600_000_000n;
const DEFAULT_TRANSACTION_MAX_GAS = 30_000_000n;
/** A second of the reference machine for a block, a quarter of it for a transaction (D21). */
const DEFAULT_BLOCK_MAX_COMPUTE_NS = 1_000_000_000;
const DEFAULT_TRANSACTION_MAX_COMPUTE_NS = 250_000_000;
const DEFAULT_BLOCK_MAX_BYTES = 16 * 1024 * 1024;

/** Coins of all accounts: a balance is a word, and half of what it holds is left for minting. */
const MOST_ATOKEN = MAX_WORD >> 1n;

/** Coins of the local faucet and hot wallet. */
const FAUCET_ATOKEN = 1_000_000_000n * ATOKEN_PER_TOKEN;
const HOT_WALLET_ATOKEN = 100_000n * ATOKEN_PER_TOKEN;

/** Runtime code of the FeeCollector predeploy, from the committed artifact. */
function feeCollectorCode(): Hex {
  const file = new URL("../../contracts/artifacts/FeeCollector.json", import.meta.url);
  const artifact = z.object({ runtimeCode: z.string() });
  return parseHex(artifact.parse(JSON.parse(fs.readFileSync(file, "utf8"))).runtimeCode);
}

/** Coins of an operator beside its stake: for fees, and to delegate more. */
const OPERATOR_ATOKEN = 1_000n * ATOKEN_PER_TOKEN;

/** What a local genesis is made from. */
export interface LocalGenesisOptions {
  readonly network: NetworkName;
  readonly faucet: Address;
  /** Of the exchange side; a network of nodes alone has none. */
  readonly hotWallet?: Address;
  readonly genesisTimeMs: number;
  readonly validators: readonly GenesisValidator[];
  readonly blockIntervalMs?: number;
  /** Present where validators have operators. */
  readonly modules?: ModuleParams;
}

/** Fresh local genesis (D18): a funded faucet, a funded hot wallet, the FeeCollector predeploy. */
export function createLocalGenesis(options: LocalGenesisOptions): Genesis {
  const { hotWallet } = options;
  const network = NETWORKS[options.network];
  const system = {
    feeCollector: parseAddress(SYSTEM_ADDRESSES.feeCollector),
    treasury: parseAddress(SYSTEM_ADDRESSES.treasury),
    validatorsPool: parseAddress(SYSTEM_ADDRESSES.validatorsPool),
    developmentFund: parseAddress(SYSTEM_ADDRESSES.developmentFund),
  };
  const plain = (balanceAtoken: Atoken): GenesisAccount => ({
    balanceAtoken,
    code: undefined,
    storage: new Map(),
  });
  const treasurySlot = new Map([[parseHash32(`0x${"00".repeat(32)}`), BigInt(system.treasury)]]);
  return {
    network: network.name,
    evmChainId: network.evmChainId,
    cosmosChainId: network.cosmosChainId,
    genesisTimeMs: options.genesisTimeMs,
    params: {
      blockIntervalMs: options.blockIntervalMs ?? BLOCK_INTERVAL_MS,
      maxGas: DEFAULT_BLOCK_MAX_GAS,
      maxTransactionGas: DEFAULT_TRANSACTION_MAX_GAS,
      computeWeights: NEWEST_WEIGHTS,
      maxComputeNs: DEFAULT_BLOCK_MAX_COMPUTE_NS,
      maxTransactionComputeNs: DEFAULT_TRANSACTION_MAX_COMPUTE_NS,
      maxBytes: DEFAULT_BLOCK_MAX_BYTES,
      ...system,
      burnAddress: BURN_ADDRESS,
    },
    alloc: new Map([
      ...options.validators.flatMap(({ operator }) =>
        operator === undefined ? [] : [[operator, plain(OPERATOR_ATOKEN)] as const],
      ),
      [options.faucet, plain(FAUCET_ATOKEN)],
      ...(hotWallet === undefined ? [] : [[hotWallet, plain(HOT_WALLET_ATOKEN)] as const]),
      [
        system.feeCollector,
        {
          balanceAtoken: 0n,
          code: feeCollectorCode(),
          storage: treasurySlot,
        },
      ],
    ]),
    validators: options.validators,
    ...(options.modules === undefined
      ? {}
      : { modules: options.modules, appVersion: NEWEST_APP_VERSION }),
  };
}

/** JSON text of a genesis; amounts are decimal strings. */
export function encodeGenesis(genesis: Genesis): string {
  const alloc = [...genesis.alloc].map(([address, account]) => [
    address,
    {
      balanceAtoken: account.balanceAtoken.toString(),
      ...(account.code === undefined ? {} : { code: account.code }),
      storage: Object.fromEntries(
        [...account.storage].map(([slot, value]) => [slot, value.toString()]),
      ),
      ...(account.vesting === undefined ? {} : { vesting: vestingJson(account.vesting) }),
    },
  ]);
  // The locks follow from the accounts.
  const { locks: _locks, ...params } = genesis.params;
  const body = {
    network: genesis.network,
    evmChainId: Number(genesis.evmChainId),
    cosmosChainId: genesis.cosmosChainId,
    genesisTimeMs: genesis.genesisTimeMs,
    params: {
      ...params,
      maxGas: params.maxGas.toString(),
      maxTransactionGas: params.maxTransactionGas.toString(),
    },
    ...(genesis.appVersion === undefined ? {} : { appVersion: genesis.appVersion }),
    ...(genesis.modules === undefined ? {} : { modules: moduleParamTexts(genesis.modules) }),
    validators: genesis.validators,
    alloc: Object.fromEntries(alloc),
  };
  return `${JSON.stringify(body, null, 2)}\n`;
}

function vestingJson({ originalAtoken, ...times }: VestingSchedule) {
  return { originalAtoken: originalAtoken.toString(), ...times };
}

/** CometBFT's defaults: evidence counts until it is older than both. */
const EVIDENCE_MAX_AGE_BLOCKS = 100_000;
const EVIDENCE_MAX_AGE_MS = 48 * 3_600 * 1_000;
const NS_PER_MS = 1_000_000n;

/** The parameters of consensus of a chain; they never change. */
export function consensusParamsOf(params: ChainParams): ConsensusParams {
  return {
    blockMaxBytes: params.maxBytes,
    blockMaxGas: params.maxGas,
    evidenceMaxAgeBlocks: params.evidenceMaxAgeBlocks ?? EVIDENCE_MAX_AGE_BLOCKS,
    evidenceMaxAgeNs: BigInt(params.evidenceMaxAgeMs ?? EVIDENCE_MAX_AGE_MS) * NS_PER_MS,
    evidenceMaxBytes: Math.min(MAX_EVIDENCE_BYTES, Math.floor(params.maxBytes / 16)),
  };
}

const addressSchema = z.string().transform((text, context) => {
  try {
    return parseAddress(text);
  } catch {
    context.addIssue({ code: "custom", message: "expected 0x followed by 40 hex digits" });
    return z.NEVER;
  }
});
const amountSchema = z
  .string()
  .regex(/^[0-9]{1,78}$/)
  .transform(BigInt);
const genesisSchema = z.strictObject({
  network: z.enum(["mainnet", "testnet"]),
  evmChainId: z.number().int().positive().transform(BigInt),
  cosmosChainId: z.string().min(1).max(50),
  genesisTimeMs: z.number().int().positive(),
  params: z.strictObject({
    blockIntervalMs: z
      .number()
      .int()
      .min(BLOCK_INTERVAL_BOUNDS_MS.min)
      .max(BLOCK_INTERVAL_BOUNDS_MS.max),
    maxGas: amountSchema,
    maxTransactionGas: amountSchema,
    computeWeights: z.literal(WEIGHTS_VERSIONS),
    maxComputeNs: z.number().int().positive(),
    maxTransactionComputeNs: z.number().int().positive(),
    maxBytes: z.number().int().min(1_024),
    evidenceMaxAgeBlocks: z.number().int().positive().optional(),
    evidenceMaxAgeMs: z.number().int().positive().optional(),
    feeCollector: addressSchema,
    treasury: addressSchema,
    validatorsPool: addressSchema,
    developmentFund: addressSchema,
    burnAddress: addressSchema,
  }),
  validators: z
    .array(
      z.strictObject({
        address: addressSchema,
        publicKey: z.string().regex(/^[A-Za-z0-9+/]{43}=$/),
        power: z.number().int().positive(),
        operator: addressSchema.optional(),
        moniker: z.string().min(1).max(70).optional(),
      }),
    )
    .min(1),
  appVersion: z.number().int().min(FIRST_APP_VERSION).optional(),
  modules: z.record(z.string(), z.string()).optional(),
  alloc: z.record(
    z.string(),
    z.strictObject({
      balanceAtoken: amountSchema,
      code: z.string().transform(parseHex).optional(),
      storage: z.record(z.string(), amountSchema).default({}),
      vesting: z
        .strictObject({
          originalAtoken: amountSchema,
          startTimeMs: z.number().int().positive().optional(),
          endTimeMs: z.number().int().positive(),
        })
        .optional(),
    }),
  ),
});

/**
 * Untrusted JSON text to a genesis.
 * @throws GENESIS_INVALID naming every fault
 */
export function parseGenesis(text: string): Genesis {
  try {
    const json: unknown = JSON.parse(text);
    assertYoungEnough(json);
    const parsed = genesisSchema.parse(json);
    if (hasRepeatedField(Buffer.from(text), json)) {
      throw new Error(
        "a field is written twice, of which one would be lost: an account, or a setting",
      );
    }
    const network = NETWORKS[parsed.network];
    if (parsed.evmChainId !== network.evmChainId) {
      throw new Error(`evmChainId must be ${network.evmChainId} on ${network.name}`);
    }
    for (const { address, publicKey } of parsed.validators) {
      const expected = validatorAddress(Buffer.from(publicKey, "base64"));
      if (address !== expected) throw new Error(`validator ${address} has the key of ${expected}`);
    }
    const modules = parsed.modules && parseModuleParams(parsed.modules);
    assertOperators(parsed.validators, modules);
    if (parsed.appVersion !== undefined && modules === undefined) {
      throw new Error("appVersion is for chains with modules");
    }
    const alloc = parseAlloc(parsed.alloc);
    const { modules: _texts, appVersion, ...others } = parsed;
    const params = { ...others.params, ...locksOf(alloc) };
    return {
      ...others,
      params,
      alloc,
      ...(appVersion === undefined ? {} : { appVersion }),
      ...(modules === undefined ? {} : { modules }),
    };
  } catch (cause) {
    throw new GenesisError("GENESIS_INVALID", `genesis is not valid: ${schemaFaultText(cause)}`, {
      cause,
    });
  }
}

/** A chain of the first release is refused by a sentence: a list of keys would read as a damaged file. */
function assertYoungEnough(json: unknown): void {
  const params: unknown = Reflect.get(Object(json), "params");
  if (!Object.hasOwn(Object(params), "maxCallGas")) return;
  throw new Error(
    "this chain was made by release 0.1.0 and does not go over: a new one begins in a new home, and the " +
      'ledger of this one can be kept to be read (docs/operations.md, "Another release")',
  );
}

/** Accounts by address: keys of another case are the same account, of which one would be lost. */
function parseAlloc(entries: z.infer<typeof genesisSchema>["alloc"]): Map<Address, GenesisAccount> {
  const alloc = new Map<Address, GenesisAccount>();
  let sumAtoken = 0n;
  for (const [key, account] of Object.entries(entries)) {
    const address = parseAddress(key);
    if (alloc.has(address)) throw new Error(`alloc has ${address} twice`);
    const { balanceAtoken, code } = account;
    sumAtoken += balanceAtoken;
    const plain = { balanceAtoken, code, storage: parseStorage(address, account.storage) };
    const vesting = account.vesting && parseVesting(address, account.vesting, plain);
    alloc.set(address, vesting === undefined ? plain : { ...plain, vesting });
  }
  if (sumAtoken > MOST_ATOKEN) {
    throw new Error("balances of alloc are more than 2^255 - 1 atoken together");
  }
  return alloc;
}

function parseStorage(
  address: Address,
  entries: Readonly<Record<string, bigint>>,
): Map<Hash32, bigint> {
  const storage = new Map<Hash32, bigint>();
  for (const [key, value] of Object.entries(entries)) {
    const slot = parseHash32(key);
    if (storage.has(slot)) throw new Error(`alloc ${address} has slot ${slot} twice`);
    if (value > MAX_WORD) throw new Error(`alloc ${address} slot ${slot} is more than 2^256 - 1`);
    storage.set(slot, value);
  }
  return storage;
}

function parseVesting(
  key: string,
  {
    originalAtoken,
    startTimeMs,
    endTimeMs,
  }: Omit<VestingSchedule, "startTimeMs"> & {
    readonly startTimeMs?: number | undefined;
  },
  { balanceAtoken, code }: Pick<GenesisAccount, "balanceAtoken" | "code">,
): VestingSchedule {
  const schedule = { originalAtoken, startTimeMs, endTimeMs };
  const fault = vestingFault(schedule, { balanceAtoken, hasCode: code !== undefined });
  if (fault !== undefined) throw new Error(`alloc ${key}: ${fault}`);
  return schedule;
}

function locksOf(alloc: ReadonlyMap<Address, GenesisAccount>): Pick<ChainParams, "locks"> {
  const locks = [...alloc].flatMap(([address, { vesting }]) =>
    vesting === undefined ? [] : [[address, vesting] as const],
  );
  return locks.length === 0 ? {} : { locks: new Map(locks) };
}

/**
 * Looks at what a chain must not begin with. `parseGenesis` takes it: one that stands has begun.
 * @throws GENESIS_INVALID for a validator's key for which everybody can sign
 */
export function assertMayBegin({ validators }: Pick<Genesis, "validators">): void {
  for (const { address, publicKey } of validators) {
    if (!isAnybodysKey(Buffer.from(publicKey, "base64"))) continue;
    const text = `genesis is not valid: validator ${address} has a key that everybody can sign for`;
    throw new GenesisError("GENESIS_INVALID", text);
  }
}

/** Stake needs operators, and the set of block 0 is the one that consensus begins with. */
function assertOperators(
  validators: readonly GenesisValidator[],
  modules: ModuleParams | undefined,
): void {
  const operators = validators.flatMap(({ operator }) =>
    operator === undefined ? [] : [operator],
  );
  if (modules === undefined) {
    if (operators.length > 0) throw new Error("validators have operators, but modules are missing");
    return;
  }
  if (operators.length < validators.length) throw new Error("a validator has no operator");
  if (new Set(operators).size < operators.length) throw new Error("an operator is there twice");
  if (BigInt(validators.length) > modules.staking.max_validators) {
    throw new Error(`there are more validators than staking.max_validators`);
  }
}

/** Reads and parses a genesis file. Throws GENESIS_INVALID, which names the file. */
export function loadGenesis(file: string): Genesis {
  let text: string;
  try {
    text = fs.readFileSync(file, "utf8");
  } catch (cause) {
    throw new GenesisError("GENESIS_INVALID", `cannot read ${file}: ${errorMessage(cause)}`, {
      cause,
    });
  }
  try {
    return parseGenesis(text);
  } catch (cause) {
    if (!(cause instanceof GenesisError)) throw cause;
    throw new GenesisError("GENESIS_INVALID", `${file}: ${cause.message}`, { cause });
  }
}
