/** `cosmos.auth.v1beta1.Query`: accounts, whose sequence is the EVM's nonce. */
import {
  ACCOUNT_PREFIX,
  type Address,
  addressToBytes,
  bytesToAddress,
  parseBech32,
  toBech32,
} from "../../../../chain/address.js";
import type { Height } from "../../../../chain/hex.js";
import type { ProtoMessage } from "../../../../chain/protobuf/values.js";
import type { VestingRead } from "../../../modules/reads/vesting-reads.js";
import { accountPage } from "../account-list.js";
import { invalidArgument, notFound } from "../errors.js";
import { coinsOf } from "../module-values.js";
import { pageRequest } from "../paging.js";
import type { QueryContext, QueryHandlers } from "../registry.js";
import { accountOf, anyOf, type ModuleAccount, type QuerySources } from "../sources.js";

const SERVICE = "/cosmos.auth.v1beta1.Query";

/** The SDK's defaults, which transactions of SDK kind are held against. */
const PARAMS = {
  max_memo_characters: 256n,
  tx_sig_limit: 7n,
  tx_size_cost_per_byte: 10n,
  sig_verify_cost_ed25519: 590n,
  sig_verify_cost_secp256k1: 1_000n,
};

/** The queries of this service. */
export function authQueries(sources: QuerySources): QueryHandlers {
  const { types, moduleAccounts } = sources;
  const moduleAny = async (one: ModuleAccount, height: Height) =>
    anyOf(types, "cosmos.auth.v1beta1.ModuleAccount", {
      base_account: await baseAccount(sources, toBech32(one.address), height, true),
      name: one.name,
      permissions: one.permissions,
    });
  const moduleOf = (text: string) => {
    const address = accountOf(text);
    return moduleAccounts.find((one) => one.address === address);
  };
  const account = async (text: string, { height, signal }: QueryContext) => {
    const own = moduleOf(text);
    if (own !== undefined) return moduleAny(own, height);
    const base = await baseAccount(sources, text, height, false);
    const locked = await sources.vesting.account(accountOf(text), height, signal);
    return accountAny(types, base, locked);
  };
  return {
    [`${SERVICE}/Account`]: async (request, context) => ({
      account: await account(request.text("address"), context),
    }),
    [`${SERVICE}/Accounts`]: async (request, context) => {
      const page = pageRequest(request);
      const isThere = async (address: Address) =>
        (await sources.chain.view.account(address, context.height)) !== undefined;
      const { items, response } = await accountPage(sources, page, context, isThere);
      const accounts = await Promise.all(items.map((one) => account(one, context)));
      return { accounts, pagination: response };
    },
    [`${SERVICE}/AccountInfo`]: async (request, { height }) => {
      const text = request.text("address");
      const isKnown = moduleOf(text) !== undefined;
      return { info: await baseAccount(sources, text, height, isKnown) };
    },
    // The chain numbers no accounts: no number is one of a single account.
    [`${SERVICE}/AccountAddressByID`]: (request) => {
      if (request.bigint("id") !== 0n) {
        const text = "requesting with id isn't supported, try to request using account-id";
        throw invalidArgument(text);
      }
      const number = request.bigint("account_id");
      throw notFound(`account address not found with account number ${number}`);
    },
    [`${SERVICE}/Params`]: () => ({ params: PARAMS }),
    [`${SERVICE}/ModuleAccounts`]: async (_request, { height }) => ({
      accounts: await Promise.all(moduleAccounts.map((one) => moduleAny(one, height))),
    }),
    [`${SERVICE}/ModuleAccountByName`]: async (request, { height }) => {
      const name = request.text("name");
      const found = moduleAccounts.find((one) => one.name === name);
      if (found === undefined) throw notFound(`account ${name} not found`);
      return { account: await moduleAny(found, height) };
    },
    [`${SERVICE}/Bech32Prefix`]: () => ({ bech32_prefix: ACCOUNT_PREFIX }),
    [`${SERVICE}/AddressBytesToString`]: (request) => ({
      address_string: toBech32(bytesToAddress(request.bytes("address_bytes"))),
    }),
    [`${SERVICE}/AddressStringToBytes`]: (request) => ({
      address_bytes: addressToBytes(parseBech32(request.text("address_string"))),
    }),
  };
}

/** An account as wallets know it: with a schedule, one that vests. */
function accountAny(
  types: QuerySources["types"],
  account: ProtoMessage,
  locked: VestingRead | undefined,
): ProtoMessage {
  if (locked === undefined) return anyOf(types, "cosmos.auth.v1beta1.BaseAccount", account);
  const { startTimeMs } = locked;
  const base_vesting_account = {
    base_account: account,
    original_vesting: coinsOf(locked.originalAtoken),
    delegated_free: coinsOf(locked.delegatedFreeAtoken),
    delegated_vesting: coinsOf(locked.delegatedLockedAtoken),
    end_time: unixSeconds(locked.endTimeMs),
  };
  if (startTimeMs === undefined) {
    return anyOf(types, "cosmos.vesting.v1beta1.DelayedVestingAccount", { base_vesting_account });
  }
  const start_time = unixSeconds(startTimeMs);
  const continuous = { base_vesting_account, start_time };
  return anyOf(types, "cosmos.vesting.v1beta1.ContinuousVestingAccount", continuous);
}

/** Whole seconds, rounded up: nothing is free sooner than it says. */
function unixSeconds(timeMs: number): bigint {
  return BigInt(Math.ceil(timeMs / 1_000));
}

/**
 * `BaseAccount`; the chain numbers no accounts, and keys are known by address only.
 * @param isKnown whether it is there by name, even before it has held anything
 */
async function baseAccount(
  { chain }: QuerySources,
  text: string,
  height: Height,
  isKnown: boolean,
): Promise<ProtoMessage> {
  const address = accountOf(text);
  const state = await chain.view.account(address, height);
  const shown = toBech32(address);
  if (state === undefined && !isKnown) throw notFound(`account ${shown} not found`);
  return { address: shown, sequence: state?.nonce ?? 0n };
}
