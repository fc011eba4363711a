/**
 * grpcurl, unmodified, with nothing but reflection: every method of every service is called as a
 * person would call it, on a node with stake, a proposal and transactions of both kinds.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { execFile } from "node:child_process";
import fs from "node:fs";
import { promisify } from "node:util";
import { JsonRpcProvider, Wallet } from "ethers";
import { parseAddress, toBech32 } from "../../chain/address.js";
import { StakedNode } from "../helpers/cosmos/staked-node.js";

const nobody = parseAddress(`0x${"99".repeat(20)}`);

/** Time for one call: a slow machine starts the program slowly. */
const CALL_TIMEOUT_MS = 60_000;

interface Amino {
  readonly json: string;
  readonly binary: string;
}

/** A transaction as SDK nodes have it in amino. */
const { transactions } = JSON.parse(
  fs.readFileSync("test/fixtures/rpc/sdk-amino.json", "utf8"),
) as {
  transactions: readonly Amino[];
};
const { json: AMINO_JSON = "", binary: AMINO_BINARY = "" } =
  transactions.find(({ json }) => json.includes("MsgUnjail")) ?? {};

interface Answer {
  readonly code: number;
  readonly text: string;
}

interface Facts {
  readonly delegator: string;
  readonly hex: string;
  readonly operator: string;
  readonly consensus: string;
  /** Of a vote. */
  readonly txHash: string;
  readonly txHeight: string;
  /** Base64. */
  readonly txBytes: string;
  /** As grpcurl shows it. */
  readonly tx: unknown;
  /** Of a transfer in the EVM: its raw bytes in base64, and its block. */
  readonly raw: string;
  readonly block: string;
}

let node: StakedNode;
let facts: Facts;

function program(): string {
  const found = process.env["GRPCURL"];
  if (found === undefined) throw new Error("run this with `npm run test:network`");
  return found;
}

async function grpcurl(...words: readonly string[]): Promise<Answer> {
  const options = { timeout: CALL_TIMEOUT_MS, maxBuffer: 64 * 1024 * 1024 };
  try {
    const { stdout } = await promisify(execFile)(program(), ["-plaintext", ...words], options);
    return { code: 0, text: stdout };
  } catch (error) {
    const { code, stderr } = error as { code?: unknown; stderr?: string };
    return { code: typeof code === "number" ? code : -1, text: stderr ?? String(error) };
  }
}

const target = () => node.url("grpc").replace("http://", "");

/** Calls a method by its path. */
function call(method: string, request: unknown): Promise<Answer> {
  return grpcurl("-d", JSON.stringify(request), target(), method);
}

async function answer(method: string, request: unknown): Promise<Record<string, never>> {
  const { code, text } = await call(method, request);
  if (code !== 0) throw new Error(`${method}: ${text}`);
  return JSON.parse(text) as Record<string, never>;
}

const TX = "cosmos.tx.v1beta1.Service";
const INTERFACES = "cosmos.base.reflection.v1beta1.ReflectionService";
const APP = "cosmos.base.reflection.v2alpha1.ReflectionService";

beforeAll(async () => {
  node = await StakedNode.start({
    "staking.unbonding_time": "86400s",
    "gov.voting_period": "86400s",
  });
  const key = fs.readFileSync(node.faucetKey, "utf8").trim();
  const hex = new Wallet(key).address;
  const { operator, consensus, voted } = await node.playStake();
  const provider = new JsonRpcProvider(node.url("jsonRpc"), 6940, { staticNetwork: true });
  const sent = await new Wallet(key, provider).sendTransaction({
    type: 0,
    to: nobody,
    value: 1n,
    gasLimit: 21_000n,
    gasPrice: 25_000_000n,
  });
  const receipt = await sent.wait(1, CALL_TIMEOUT_MS);
  const raw = String(await provider.send("debug_getRawTransaction", [sent.hash]));
  provider.destroy();
  const { tx } = await answer(`${TX}/GetTx`, { hash: voted.txhash });
  const encoded = await answer(`${TX}/TxEncode`, { tx });
  facts = {
    delegator: toBech32(parseAddress(hex)),
    hex,
    operator,
    consensus,
    txHash: voted.txhash,
    txHeight: voted.height,
    txBytes: String(encoded["txBytes"]),
    tx,
    raw: Buffer.from(raw.slice(2), "hex").toString("base64"),
    block: String(receipt?.blockNumber),
  };
});

afterAll(() => node?.close());

type Call = readonly [unknown, RegExp?];

/** A request for each method, and what its answer has to hold. */
function calls(): Readonly<Record<string, Call>> {
  const { delegator, operator, consensus, hex, txHash, txHeight, txBytes, tx, raw, block } = facts;
  const address = { address: delegator };
  const ofDelegator = { delegator_addr: delegator };
  const ofOperator = { validator_addr: operator };
  const both = { ...ofDelegator, ...ofOperator };
  const delegated = { delegator_address: delegator };
  const validated = { validator_address: operator };
  const denom = { denom: "atoken" };
  const proposal = { proposal_id: "1" };
  const args = Buffer.from(JSON.stringify({ from: hex, to: nobody, value: "0x1" }));
  const evmCall = { args: args.toString("base64"), gas_cap: "1000000" };
  const callTracer = { trace_config: { tracer: "callTracer" } };
  const traced = /"data": "[A-Za-z0-9+/]+=*"/;
  return {
    "causeway.supply.v1.Query/Supply": [{}, /"circulating"/],
    "cosmos.auth.v1beta1.Query/Account": [address, /EthAccount|BaseAccount/],
    "cosmos.auth.v1beta1.Query/AccountInfo": [address, /"sequence"/],
    "cosmos.auth.v1beta1.Query/Accounts": [{}, /"accounts"/],
    "cosmos.auth.v1beta1.Query/AddressBytesToString": [
      { address_bytes: Buffer.from(hex.slice(2), "hex").toString("base64") },
      /"addressString"/,
    ],
    "cosmos.auth.v1beta1.Query/AddressStringToBytes": [{ address_string: delegator }, /Bytes/],
    "cosmos.auth.v1beta1.Query/Bech32Prefix": [{}, /"addr"/],
    "cosmos.auth.v1beta1.Query/ModuleAccountByName": [{ name: "gov" }, /"gov"/],
    "cosmos.auth.v1beta1.Query/ModuleAccounts": [{}, /"distribution"/],
    "cosmos.auth.v1beta1.Query/Params": [{}, /"256"/],
    "cosmos.bank.v1beta1.Query/AllBalances": [address, /"atoken"/],
    "cosmos.bank.v1beta1.Query/Balance": [{ ...address, ...denom }, /"amount"/],
    "cosmos.bank.v1beta1.Query/DenomMetadata": [denom, /"base"/],
    "cosmos.bank.v1beta1.Query/DenomMetadataByQueryString": [denom, /"base"/],
    "cosmos.bank.v1beta1.Query/DenomOwners": [denom, /"denomOwners"/],
    "cosmos.bank.v1beta1.Query/DenomOwnersByQuery": [denom, /"denomOwners"/],
    "cosmos.bank.v1beta1.Query/DenomsMetadata": [{}, /"base"/],
    "cosmos.bank.v1beta1.Query/Params": [{}, /true/],
    "cosmos.bank.v1beta1.Query/SendEnabled": [{}],
    "cosmos.bank.v1beta1.Query/SpendableBalanceByDenom": [{ ...address, ...denom }, /"amount"/],
    "cosmos.bank.v1beta1.Query/SpendableBalances": [address, /"atoken"/],
    "cosmos.bank.v1beta1.Query/SupplyOf": [denom, /"amount"/],
    "cosmos.bank.v1beta1.Query/TotalSupply": [{}, /"amount"/],
    "cosmos.base.node.v1beta1.Service/Config": [{}, /"minimumGasPrice"/],
    "cosmos.base.node.v1beta1.Service/Status": [{}, /"height"/],
    [`${INTERFACES}/ListAllInterfaces`]: [{}, /cosmos\.base\.v1beta1\.Msg/],
    [`${INTERFACES}/ListImplementations`]: [
      { interface_name: "cosmos.base.v1beta1.Msg" },
      /cosmos\.bank\.v1beta1\.MsgSend/,
    ],
    [`${APP}/GetAuthnDescriptor`]: [{}, /SIGN_MODE_DIRECT/],
    [`${APP}/GetChainDescriptor`]: [{}, /"id"/],
    [`${APP}/GetCodecDescriptor`]: [{}, /"typeUrl"/],
    [`${APP}/GetConfigurationDescriptor`]: [{}, /"addr"/],
    [`${APP}/GetQueryServicesDescriptor`]: [{}, /"fullQueryPath"/],
    [`${APP}/GetTxDescriptor`]: [{}, /"msgTypeUrl"/],
    "cosmos.base.tendermint.v1beta1.Service/ABCIQuery": [
      { path: "/cosmos.bank.v1beta1.Query/Params" },
      /"height"/,
    ],
    "cosmos.base.tendermint.v1beta1.Service/GetBlockByHeight": [{ height: block }, /"blockId"/],
    "cosmos.base.tendermint.v1beta1.Service/GetLatestBlock": [{}, /"blockId"/],
    "cosmos.base.tendermint.v1beta1.Service/GetLatestValidatorSet": [{}, /"validators"/],
    "cosmos.base.tendermint.v1beta1.Service/GetNodeInfo": [{}, /"app": "2"/],
    "cosmos.base.tendermint.v1beta1.Service/GetSyncing": [{}],
    "cosmos.base.tendermint.v1beta1.Service/GetValidatorSetByHeight": [
      { height: block },
      /"validators"/,
    ],
    "cosmos.consensus.v1.Query/Params": [{}, /"maxGas"/],
    "cosmos.distribution.v1beta1.Query/CommunityPool": [{}],
    "cosmos.distribution.v1beta1.Query/DelegationRewards": [{ ...delegated, ...validated }],
    "cosmos.distribution.v1beta1.Query/DelegationTotalRewards": [delegated, /"rewards"/],
    "cosmos.distribution.v1beta1.Query/DelegatorValidators": [delegated, /"validators"/],
    "cosmos.distribution.v1beta1.Query/DelegatorWithdrawAddress": [delegated, /addr1/],
    "cosmos.distribution.v1beta1.Query/Params": [{}, /"communityTax"/],
    "cosmos.distribution.v1beta1.Query/ValidatorCommission": [validated, /"commission"/],
    "cosmos.distribution.v1beta1.Query/ValidatorDistributionInfo": [validated, /"operatorAddress"/],
    "cosmos.distribution.v1beta1.Query/ValidatorOutstandingRewards": [validated, /"rewards"/],
    "cosmos.distribution.v1beta1.Query/ValidatorSlashes": [
      { ...validated, starting_height: "1", ending_height: block },
    ],
    "cosmos.evidence.v1beta1.Query/AllEvidence": [{}],
    "cosmos.evm.feemarket.v1.Query/BaseFee": [{}, /"baseFee": "0"/],
    "cosmos.evm.feemarket.v1.Query/BlockGas": [{}],
    "cosmos.evm.feemarket.v1.Query/Params": [{}, /"noBaseFee": true/],
    "cosmos.evm.vm.v1.Query/Account": [{ address: hex }, /"nonce"/],
    "cosmos.evm.vm.v1.Query/Balance": [{ address: hex }, /"balance"/],
    "cosmos.evm.vm.v1.Query/BaseFee": [{}, /"baseFee": "0"/],
    "cosmos.evm.vm.v1.Query/Code": [{ address: `0x${"0".repeat(37)}800` }, /"code"/],
    "cosmos.evm.vm.v1.Query/Config": [{}, /"chainId": "6940"/],
    "cosmos.evm.vm.v1.Query/CosmosAccount": [{ address: hex }, /"cosmosAddress"/],
    "cosmos.evm.vm.v1.Query/EstimateGas": [evmCall, /"gas": "21000"/],
    "cosmos.evm.vm.v1.Query/EthCall": [evmCall, /"gasUsed": "21000"/],
    "cosmos.evm.vm.v1.Query/GlobalMinGasPrice": [{}, /"minGasPrice"/],
    "cosmos.evm.vm.v1.Query/Params": [{}, /"evmDenom": "atoken"/],
    "cosmos.evm.vm.v1.Query/Storage": [
      { address: `0x${"0".repeat(37)}800`, key: `0x${"0".repeat(64)}` },
      /"value"/,
    ],
    "cosmos.evm.vm.v1.Query/TraceBlock": [{ block_number: block, ...callTracer }, traced],
    "cosmos.evm.vm.v1.Query/TraceCall": [{ ...evmCall, ...callTracer }, traced],
    "cosmos.evm.vm.v1.Query/TraceTx": [{ msg: { raw }, block_number: block }, traced],
    "cosmos.evm.vm.v1.Query/ValidatorAccount": [{ cons_address: consensus }, /"accountAddress"/],
    "cosmos.gov.v1.Query/Constitution": [{}],
    "cosmos.gov.v1.Query/Deposit": [{ ...proposal, depositor: delegator }, /"amount"/],
    "cosmos.gov.v1.Query/Deposits": [proposal, /"deposits"/],
    "cosmos.gov.v1.Query/Params": [{ params_type: "voting" }, /"votingPeriod"/],
    "cosmos.gov.v1.Query/Proposal": [proposal, /"Words"/],
    "cosmos.gov.v1.Query/Proposals": [{}, /"Words"/],
    "cosmos.gov.v1.Query/TallyResult": [proposal, /"yesCount"/],
    "cosmos.gov.v1.Query/Vote": [{ ...proposal, voter: delegator }, /"VOTE_OPTION_YES"/],
    "cosmos.gov.v1.Query/Votes": [proposal, /"VOTE_OPTION_YES"/],
    "cosmos.gov.v1beta1.Query/Deposit": [{ ...proposal, depositor: delegator }, /"amount"/],
    "cosmos.gov.v1beta1.Query/Deposits": [proposal, /"deposits"/],
    "cosmos.gov.v1beta1.Query/Params": [{ params_type: "voting" }, /"votingPeriod"/],
    "cosmos.gov.v1beta1.Query/Proposal": [proposal, /"proposalId": "1"/],
    "cosmos.gov.v1beta1.Query/Proposals": [{}, /"proposalId": "1"/],
    "cosmos.gov.v1beta1.Query/TallyResult": [proposal, /"yes"/],
    "cosmos.gov.v1beta1.Query/Vote": [{ ...proposal, voter: delegator }, /"VOTE_OPTION_YES"/],
    "cosmos.gov.v1beta1.Query/Votes": [proposal, /"VOTE_OPTION_YES"/],
    "cosmos.mint.v1beta1.Query/AnnualProvisions": [{}, /"annualProvisions"/],
    "cosmos.mint.v1beta1.Query/Inflation": [{}, /"inflation"/],
    "cosmos.mint.v1beta1.Query/Params": [{}, /"mintDenom": "atoken"/],
    "cosmos.params.v1beta1.Query/Params": [
      { subspace: "staking", key: "MaxValidators" },
      /"value"/,
    ],
    "cosmos.params.v1beta1.Query/Subspaces": [{}, /"staking"/],
    "cosmos.slashing.v1beta1.Query/Params": [{}, /"signedBlocksWindow"/],
    "cosmos.slashing.v1beta1.Query/SigningInfo": [{ cons_address: consensus }, /"address"/],
    "cosmos.slashing.v1beta1.Query/SigningInfos": [{}, /"info"/],
    "cosmos.staking.v1beta1.Query/Delegation": [both, /"shares"/],
    "cosmos.staking.v1beta1.Query/DelegatorDelegations": [ofDelegator, /"shares"/],
    "cosmos.staking.v1beta1.Query/DelegatorUnbondingDelegations": [ofDelegator, /"entries"/],
    "cosmos.staking.v1beta1.Query/DelegatorValidator": [both, /"operatorAddress"/],
    "cosmos.staking.v1beta1.Query/DelegatorValidators": [ofDelegator, /"operatorAddress"/],
    "cosmos.staking.v1beta1.Query/HistoricalInfo": [{ height: block }, /"header"/],
    "cosmos.staking.v1beta1.Query/Params": [{}, /"bondDenom": "atoken"/],
    "cosmos.staking.v1beta1.Query/Pool": [{}, /"bondedTokens"/],
    "cosmos.staking.v1beta1.Query/Redelegations": [ofDelegator],
    "cosmos.staking.v1beta1.Query/UnbondingDelegation": [both, /"entries"/],
    "cosmos.staking.v1beta1.Query/Validator": [ofOperator, /"operatorAddress"/],
    "cosmos.staking.v1beta1.Query/ValidatorDelegations": [ofOperator, /"shares"/],
    "cosmos.staking.v1beta1.Query/ValidatorUnbondingDelegations": [ofOperator, /"entries"/],
    "cosmos.staking.v1beta1.Query/Validators": [{}, /"operatorAddress"/],
    [`${TX}/BroadcastTx`]: [
      { tx_bytes: txBytes, mode: "BROADCAST_MODE_SYNC" },
      /already exists in cache/,
    ],
    [`${TX}/GetBlockWithTxs`]: [{ height: txHeight }, /MsgVote/],
    [`${TX}/GetTx`]: [{ hash: txHash }, /MsgVote/],
    [`${TX}/GetTxsEvent`]: [{ query: "message.module='governance'" }, /MsgVote/],
    [`${TX}/TxDecode`]: [{ tx_bytes: txBytes }, /MsgVote/],
    [`${TX}/TxDecodeAmino`]: [{ amino_binary: AMINO_BINARY }, /StdTx.*MsgUnjail/],
    [`${TX}/TxEncode`]: [{ tx }, /"txBytes"/],
    [`${TX}/TxEncodeAmino`]: [{ amino_json: AMINO_JSON }, /"aminoBinary": "KCgWqQ/],
    "cosmos.upgrade.v1beta1.Query/AppliedPlan": [{ name: "sdk-refusals" }],
    "cosmos.upgrade.v1beta1.Query/Authority": [{}, /addr1/],
    "cosmos.upgrade.v1beta1.Query/CurrentPlan": [{}],
    "cosmos.upgrade.v1beta1.Query/ModuleVersions": [{}, /"gov"/],
    "cosmos.upgrade.v1beta1.Query/UpgradedConsensusState": [{ last_height: "1" }],
  };
}

/** Methods that refuse what is asked, and rightly. */
function refused(): Readonly<Record<string, Call>> {
  return {
    // No account has a number of its own.
    "cosmos.auth.v1beta1.Query/AccountAddressByID": [{ account_id: "7" }, /NotFound.*number 7/s],
    // Nobody has signed twice.
    "cosmos.evidence.v1beta1.Query/Evidence": [{ hash: "ab".repeat(32) }, /NotFound.*not found/s],
    // Its sequence is in the past.
    [`${TX}/Simulate`]: [{ tx_bytes: facts.txBytes }, /Unknown.*account sequence mismatch/s],
  };
}

describe("grpcurl", () => {
  it("finds every method by reflection, with its messages, and is answered by each", async () => {
    const listed = await grpcurl(target(), "list");
    expect(listed.code).toBe(0);
    const services = listed.text.trim().split("\n");
    const own = services.filter((name) => !name.startsWith("grpc.reflection."));
    expect(services.length - own.length).toBe(2);
    const methods: string[] = [];
    for (const service of own) {
      const { code, text } = await grpcurl(target(), "list", service);
      expect([service, code]).toEqual([service, 0]);
      for (const line of text.trim().split("\n")) methods.push(line.replace(/\.(\w+)$/, "/$1"));
      const described = await grpcurl(target(), "describe", service);
      expect([service, described.code]).toEqual([service, 0]);
    }
    const wanted = calls();
    const unwanted = refused();
    const faults: Record<string, string> = {};
    for (const [method, [request, pattern = /^\{/]] of Object.entries(wanted)) {
      const { code, text } = await call(method, request);
      if (code !== 0 || !pattern.test(text)) faults[method] = `${code}: ${text.slice(0, 400)}`;
    }
    for (const [method, [request, pattern = /./]] of Object.entries(unwanted)) {
      const { code, text } = await call(method, request);
      if (code === 0 || !pattern.test(text)) faults[method] = `${code}: ${text.slice(0, 400)}`;
    }
    expect(faults).toEqual({});
    expect(methods.toSorted()).toEqual(Object.keys({ ...wanted, ...unwanted }).toSorted());
  });

  it("is told clearly what this chain has not", async () => {
    const { code, text } = await call("cosmos.authz.v1beta1.Query/Grants", {});
    expect(code).not.toBe(0);
    expect(text).toMatch(/does not expose service|Unimplemented/);
  });
});
