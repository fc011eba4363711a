/**
 * A chain whose validators have stake, driven block by block; every block is executed by both
 * engines, which must come to the same hash, journal and events.
 */
import fs from "node:fs";
import { Interface, keccak256, toUtf8Bytes, Wallet } from "ethers";
import { type Address, parseAddress, toBech32, VALIDATOR_PREFIX } from "../../../chain/address.js";
import { signingKeyOf } from "../../../chain/consensus/ed25519.js";
import { transactionEventSteps } from "../../../chain/abci-event.js";
import { validatorAddress } from "../../../chain/consensus/validator-set.js";
import { contractAddressOf } from "../../../chain/evm/contract-address.js";
import { present } from "../../../chain/errors.js";
import { bytesToHex, parseHexBytes } from "../../../chain/hex.js";
import { type JobResults, runJob } from "../../../node/execution/calls/call-jobs.js";
import type { CallRequest } from "../../../node/execution/calls/call-port.js";
import type { Job, JobWork } from "../../../node/execution/calls/call-protocol.js";
import { createLocalGenesis, type Genesis } from "../../../node/settings/genesis.js";
import { parseModuleParams } from "../../../node/settings/module-params.js";
import { JournaledState } from "../../../node/state/journaled-state.js";
import { compileSolidity } from "../contracts/solidity.js";
import { ExecutionChain } from "./execution-chain.js";
import { executedTransaction } from "../executed-transaction.js";
import { allAtOnce } from "../../../chain/steps/steps.js";

const CHAIN_ID = 6940;
const GAS_PRICE = 1_000n;

/** Published interfaces: name and address. */
const ADDRESSES = {
  IStaking: "800",
  IDistribution: "801",
  IBank: "804",
  IGov: "805",
  ISlashing: "806",
  IBech32: "400",
} as const;

/** The interfaces of the chain's own contracts, compiled from their published sources. */
export const PUBLISHED = compileSolidity(
  Object.fromEntries(
    ["Types", ...Object.keys(ADDRESSES)].map((name) => {
      const file = `contracts/interfaces/${name}.sol`;
      return [file, fs.readFileSync(file, "utf8")];
    }),
  ),
);

/** One of them in ethers' words. */
export function published(name: keyof typeof ADDRESSES): {
  readonly abi: Interface;
  readonly address: Address;
} {
  const { abi } = present(PUBLISHED[name], `an interface ${name}`);
  const address = parseAddress(`0x${ADDRESSES[name].padStart(40, "0")}`);
  return { abi: new Interface(abi), address };
}

/** Who signs: the operator of the first validator has the first key. */
export const wallets = Array.from(
  { length: 6 },
  (_, index) => new Wallet(keccak256(toUtf8Bytes(`native chain ${index}`))),
);

/** The account of a wallet. */
export function accountOf(index: number): Address {
  return parseAddress(wallets[index]?.address);
}

/** A validator's operator as the contracts take it. */
export function operatorText(index: number): string {
  return toBech32(accountOf(index), VALIDATOR_PREFIX);
}

/** Validators 0 and 1 with a stake of 100 and 50; everybody has coins. */
export function nativeGenesis(params: Readonly<Record<string, string>> = {}): Genesis {
  const genesis = createLocalGenesis({
    network: "testnet",
    faucet: accountOf(5),
    genesisTimeMs: 1_750_000_000_000,
    validators: [100, 50].map((power, index) => {
      const { publicKey } = signingKeyOf(Buffer.alloc(32, index + 1));
      return {
        address: validatorAddress(publicKey),
        publicKey: Buffer.from(publicKey).toString("base64"),
        power,
        operator: accountOf(index),
        moniker: `validator ${index}`,
      };
    }),
    modules: parseModuleParams(params),
  });
  const plain = { balanceAtoken: 1_000n * 10n ** 18n, code: undefined, storage: new Map() };
  const alloc = new Map(genesis.alloc);
  for (const index of [2, 3, 4]) alloc.set(accountOf(index), plain);
  return { ...genesis, alloc };
}

/** A call to be signed. */
export interface Sent {
  readonly from?: number;
  readonly to?: string | null;
  readonly data?: string;
  readonly value?: bigint;
  readonly gasLimit?: bigint;
}

/** The same as a call that nobody signs. */
export function request({
  from = 2,
  to = null,
  data = "0x",
  value = 0n,
  gasLimit,
}: Sent): CallRequest {
  return {
    from: accountOf(from),
    to: to === null ? undefined : parseAddress(to),
    valueAtoken: value,
    gasPriceAtoken: 0n,
    gasLimit,
    data: parseHexBytes(data),
    accessList: [],
  };
}

/** The chain with wallets. */
export class NativeChain {
  private readonly nonces = new Map<number, number>();

  private constructor(readonly chain: ExecutionChain) {}

  /** @param appVersion of the rules; the newest where it is absent */
  static async open(
    params: Readonly<Record<string, string>> = {},
    appVersion?: number,
  ): Promise<NativeChain> {
    const genesis = nativeGenesis(params);
    const chain = appVersion === undefined ? genesis : { ...genesis, appVersion };
    return new NativeChain(await ExecutionChain.open(chain));
  }

  /** Signs a transaction with the next nonce of its sender. */
  async sign({ from = 2, to = null, data = "0x", value = 0n, gasLimit = 3_000_000n }: Sent) {
    const nonce = this.nonces.get(from) ?? 0;
    this.nonces.set(from, nonce + 1);
    const fields = { type: 0, chainId: CHAIN_ID, nonce, gasPrice: GAS_PRICE, gasLimit };
    return present(wallets[from], "a wallet").signTransaction({ ...fields, to, data, value });
  }

  /** Mines one block of transactions, on both engines. */
  async mine(...sent: readonly Sent[]) {
    const raws: string[] = [];
    for (const one of sent) raws.push(await this.sign(one));
    const other = await this.chain.execute(raws, [], "ethereumjs");
    const mined = await this.chain.mine(raws);
    const refused = mined.outcomes.filter(({ included }) => !included);
    if (refused.length > 0) throw new Error(JSON.stringify(refused));
    const [own, library] = [mined, other.executed].map(({ committed }) => ({
      hash: committed.block.hash,
      journal: committed.journal,
      logs: committed.receipts.map(({ logs }) => logs),
      gas: committed.receipts.map(({ gasUsed }) => gasUsed),
    }));
    return { ...mined, own, library };
  }

  /** Mines one transaction; what came of it. */
  async send(sent: Sent) {
    const { committed, own, library } = await this.mine(sent);
    const executed = executedTransaction(committed, 0);
    const receipt = present(committed.receipts[0], "a receipt");
    const changes = present(committed.journal.transactions[0], "a journal").changes;
    return {
      committed,
      own,
      library,
      receipt,
      changes,
      events: allAtOnce(transactionEventSteps(executed)).map(({ type, attributes }) => ({
        type,
        values: Object.fromEntries(attributes.map(({ key, value }) => [key, value])),
      })),
    };
  }

  /** Creates a contract. @returns its address */
  async deploy(bytecode: string, options: Omit<Sent, "to" | "data"> = {}): Promise<Address> {
    const { from = 2 } = options;
    const nonce = BigInt(this.nonces.get(from) ?? 0);
    const { receipt } = await this.send({ ...options, to: null, data: bytecode });
    if (receipt.status !== 1) throw new Error("the contract was not created");
    return contractAddressOf(accountOf(from), nonce);
  }

  /** Does a job of the call workers over the state of the head. */
  work<Kind extends JobWork["kind"]>(
    job: Extract<JobWork, { kind: Kind }>,
  ): Promise<JobResults[Kind]> {
    const { stores, view, genesis } = this.chain;
    const head = view.head();
    const outline = present(view.outline(head.height), "a head");
    const { feeCollector, validatorsPool, computeWeights } = genesis.params;
    const { maxTransactionGas, maxTransactionComputeNs } = genesis.params;
    const block: Job["block"] = {
      ...outline.header,
      height: head.height,
      hash: head.hash,
      native: {
        timeMs: head.timeMs,
        totalSupplyAtoken: stores.blocks.supply(head.height)?.totalAtoken,
        feeCollector,
        validatorsPool,
      },
    };
    const bounds = {
      gasCap: 50_000_000n,
      maxTransactionGas,
      maxTransactionComputeNs,
      computeWeights,
    };
    const settings = { chainId: genesis.evmChainId, feeCollector, validatorsPool, ...bounds };
    const environment = {
      settings,
      reader: stores.state.readerAt(head.height),
      blockHash: (height: number) => stores.blocks.hashOf(height),
    };
    return runJob({ id: 1, block, work: job }, environment) as Promise<JobResults[Kind]>;
  }

  /** eth_call of a view, in ethers' words; throws its reason where it reverts. */
  async view(
    { abi, address }: ReturnType<typeof published>,
    name: string,
    args: readonly unknown[],
  ) {
    const sent = { to: address, data: abi.encodeFunctionData(name, args) };
    const result = await this.work({ kind: "call", request: request(sent) });
    if (result.outcome === "success") {
      return abi.decodeFunctionResult(name, bytesToHex(result.returnData)).toArray(true);
    }
    const data = result.outcome === "revert" ? bytesToHex(result.returnData) : "0x";
    throw new Error(String(abi.parseError(data)?.args[0] ?? result.outcome));
  }

  /** The state as it is now. */
  state(): JournaledState {
    return new JournaledState(this.chain.stores.state);
  }

  balance(address: Address): bigint {
    return this.state().accountNow(address)?.balanceAtoken ?? 0n;
  }

  close(): Promise<void> {
    return this.chain.close();
  }
}

/** Logs in ethers' words: the name and the values by their names. */
export function decodedLogs(
  logs: readonly { address: Address; topics: readonly string[]; data: Uint8Array }[],
  interfaces: readonly { readonly abi: Interface; readonly address: Address }[],
) {
  return logs.flatMap(({ address, topics, data }) => {
    const found = interfaces.find((one) => one.address === address);
    const parsed = found?.abi.parseLog({ topics: [...topics], data: bytesToHex(data) });
    return parsed === null || parsed === undefined
      ? []
      : [{ name: parsed.name, values: parsed.args.toObject() }];
  });
}
