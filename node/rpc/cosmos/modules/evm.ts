/** `cosmos.evm.vm.v1.Query`: the EVM's accounts, code and storage, calls and estimates. */
import { consensusText, toBech32 } from "../../../../chain/address.js";
import { NATIVE_CONTRACTS } from "../../../../chain/evm/precompiles.js";
import { bigintToWord, bytesToHex, EMPTY_CODE_HASH, type Height } from "../../../../chain/hex.js";
import type { MessageReader, ProtoMessage } from "../../../../chain/protobuf/values.js";
import {
  BASE_DENOM,
  minimumGasPriceAtoken,
  parseMinimumGasPrices,
  TOKEN_DECIMALS,
} from "../../../../chain/units.js";
import { parseStateOverrides } from "../../evm/arguments/overrides.js";
import { parseSlot } from "../../evm/params.js";
import type { CallResult } from "../../../execution/calls/call-port.js";
import { listValidators } from "../../../modules/reads/staking-reads.js";
import { notFound } from "../errors.js";
import { callOf, jsonOf, readParam } from "../evm-arguments.js";
import { consensusAddressIn } from "../module-values.js";
import type { QueryContext, QueryHandlers } from "../registry.js";
import { accountOf, type QuerySources } from "../sources.js";

const SERVICE = "/cosmos.evm.vm.v1.Query";

/** The queries of this service. */
export function evmQueries(sources: QuerySources): QueryHandlers {
  const { chain, node } = sources;
  const floor = minimumGasPriceAtoken(parseMinimumGasPrices(node.minimumGasPrices));
  const state = (request: MessageReader, height: Height) =>
    chain.view.account(accountOf(request.text("address")), height);
  return {
    [`${SERVICE}/Account`]: async (request, { height }) => {
      const account = await state(request, height);
      return {
        balance: (account?.balanceAtoken ?? 0n).toString(),
        code_hash: account?.codeHash ?? EMPTY_CODE_HASH,
        nonce: account?.nonce ?? 0n,
      };
    },
    [`${SERVICE}/CosmosAccount`]: async (request, { height }) => {
      const account = await state(request, height);
      const cosmos_address = toBech32(accountOf(request.text("address")));
      return { cosmos_address, sequence: account?.nonce ?? 0n };
    },
    [`${SERVICE}/Balance`]: async (request, { height }) => ({
      balance: ((await state(request, height))?.balanceAtoken ?? 0n).toString(),
    }),
    [`${SERVICE}/Storage`]: async (request, { height }) => {
      const address = accountOf(request.text("address"));
      const slot = readParam(() => parseSlot(request.text("key")), "key");
      const value = await chain.view.storageAt(address, slot, height);
      return { value: bytesToHex(bigintToWord(value)) };
    },
    [`${SERVICE}/Code`]: async (request, { height }) => ({
      code: await chain.view.code(accountOf(request.text("address")), height),
    }),
    [`${SERVICE}/Params`]: () => ({ params: PARAMS }),
    [`${SERVICE}/BaseFee`]: () => ({ base_fee: 0n }),
    [`${SERVICE}/GlobalMinGasPrice`]: () => ({ min_gas_price: floor }),
    [`${SERVICE}/Config`]: () => ({ config: chainConfig(sources.evmChainId) }),
    [`${SERVICE}/EthCall`]: async (request, context) => {
      const result = await sources.calls.call(callOf(sources, request), context.height, {
        ...overridesOf(request),
        signal: context.signal,
        client: context.client,
      });
      const { ret, vm_error } = outcome(result);
      return { ret, vm_error, gas_used: result.gasUsed };
    },
    [`${SERVICE}/EstimateGas`]: (request, context) => estimate(sources, request, context),
    ...validatorAccount(sources),
  };
}

/** The account of the operator behind a consensus key, where validators have operators. */
function validatorAccount({ chain, modules }: QuerySources): QueryHandlers {
  if (modules === undefined) return {};
  return {
    [`${SERVICE}/ValidatorAccount`]: async (request, { height, signal }) => {
      const wanted = consensusAddressIn(request, "cons_address");
      const lines = await modules.at(height).read(listValidators, signal);
      const found = lines.find(({ consensusAddress }) => consensusAddress === wanted);
      if (found === undefined) {
        throw notFound(`error while getting validator ${consensusText(wanted)}: does not exist`);
      }
      const account = await chain.view.account(found.operator, height);
      return { account_address: toBech32(found.operator), sequence: account?.nonce ?? 0n };
    },
  };
}

/** Everybody may create and call; the contracts are those of the chain itself. */
const PARAMS: ProtoMessage = {
  evm_denom: BASE_DENOM,
  access_control: { create: {}, call: {} },
  active_static_precompiles: [...NATIVE_CONTRACTS.values()].toSorted(),
};

/** Forks that are in force from block 0 on (D19); later ones are absent. */
function chainConfig(chainId: bigint): ProtoMessage {
  const forks = [
    ..."homestead dao_fork eip150 eip155 eip158 byzantium constantinople petersburg".split(" "),
    ..."istanbul muir_glacier berlin london arrow_glacier gray_glacier merge_netsplit".split(" "),
  ];
  return {
    ...Object.fromEntries(forks.map((fork) => [`${fork}_block`, 0n])),
    dao_fork_support: true,
    chain_id: chainId,
    denom: BASE_DENOM,
    decimals: BigInt(TOKEN_DECIMALS),
    shanghai_time: 0n,
    cancun_time: 0n,
  };
}

function overridesOf(request: MessageReader) {
  const bytes = request.bytes("overrides");
  if (bytes.length === 0) return {};
  const json = jsonOf(bytes, "overrides");
  return { overrides: readParam(() => parseStateOverrides(json), "overrides") };
}

function outcome(result: CallResult | { readonly outcome: "success" }) {
  if (result.outcome === "success") {
    return { ret: "returnData" in result ? result.returnData : new Uint8Array(0), vm_error: "" };
  }
  if (result.outcome === "error") return { ret: new Uint8Array(0), vm_error: result.error };
  return { ret: result.returnData, vm_error: "execution reverted" };
}

async function estimate(
  sources: QuerySources,
  request: MessageReader,
  { height, signal, client }: QueryContext,
): Promise<ProtoMessage> {
  const call = callOf(sources, request);
  const result = await sources.calls.estimateGas(call, height, {
    ...overridesOf(request),
    signal,
    client,
  });
  if (result.outcome === "success") return { gas: result.gas };
  return outcome(result);
}
