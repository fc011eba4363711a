/**
 * `cosmos.base.reflection`, v1beta1 and v2alpha1: what an application is, for clients that are written for
 * none: its messages, the kinds that stand behind an Any, its queries, prefix and ways to sign.
 */
import { ACCOUNT_PREFIX } from "../../../../chain/address.js";
import { allSchemas } from "../../../../chain/cosmos/message-schemas.js";
import type { ProtoMessage } from "../../../../chain/protobuf/values.js";
import type { QueryHandlers, QueryRegistry } from "../registry.js";
import type { QuerySources } from "../sources.js";

const INTERFACES = "/cosmos.base.reflection.v1beta1.ReflectionService";
const APP = "/cosmos.base.reflection.v2alpha1.ReflectionService";

/** Messages that transactions carry: those that have a signer, and Ethereum's. */
const MESSAGES: readonly string[] = [
  ...allSchemas().flatMap(({ name, signer }) => (signer === undefined ? [] : [name])),
  "cosmos.evm.vm.v1.MsgEthereumTx",
];

const VESTING = ["ContinuousVestingAccount", "DelayedVestingAccount"].map(
  (name) => `cosmos.vesting.v1beta1.${name}`,
);
const MODULE_ACCOUNT = "cosmos.auth.v1beta1.ModuleAccount";

/** Names of the SDK's interfaces, and what stands for them on this chain. */
const IMPLEMENTERS: ReadonlyMap<string, readonly string[]> = new Map([
  ["cosmos.auth.v1beta1.AccountI", ["cosmos.auth.v1beta1.BaseAccount", MODULE_ACCOUNT, ...VESTING]],
  ["cosmos.auth.v1beta1.ModuleAccountI", [MODULE_ACCOUNT]],
  ["cosmos.base.v1beta1.Msg", MESSAGES],
  [
    "cosmos.crypto.PubKey",
    ["cosmos.crypto.ed25519.PubKey", "cosmos.evm.crypto.v1.ethsecp256k1.PubKey"],
  ],
  [
    "cosmos.gov.v1beta1.Content",
    allSchemas()
      .filter(({ name, signer }) => signer === undefined && name.endsWith("Proposal"))
      .map(({ name }) => name),
  ],
  ["cosmos.tx.v1beta1.MsgResponse", MESSAGES.map((name) => `${name}Response`)],
  ["cosmos.tx.v1beta1.Tx", ["cosmos.tx.v1beta1.Tx"]],
  ["cosmos.vesting.v1beta1.VestingAccount", VESTING],
]);

/** Modes in which a transaction may be signed; typed data comes under either. */
const SIGN_MODES: readonly ProtoMessage[] = [
  { name: "SIGN_MODE_DIRECT", number: 1 },
  { name: "SIGN_MODE_LEGACY_AMINO_JSON", number: 127 },
];

/** The queries of both services. @param queries gives the registry, which is what they tell of */
export function reflectionQueries(
  { chain }: QuerySources,
  queries: () => QueryRegistry,
): QueryHandlers {
  return {
    [`${INTERFACES}/ListAllInterfaces`]: () => ({ interface_names: [...IMPLEMENTERS.keys()] }),
    [`${INTERFACES}/ListImplementations`]: (request) => ({
      implementation_message_names: implementers(request.text("interface_name")).map(urlOf),
    }),
    [`${APP}/GetAuthnDescriptor`]: () => ({ authn: { sign_modes: SIGN_MODES } }),
    [`${APP}/GetChainDescriptor`]: () => ({ chain: { id: chain.genesis.chainId } }),
    [`${APP}/GetCodecDescriptor`]: () => ({
      codec: {
        interfaces: [...IMPLEMENTERS].map(([fullname, names]) => ({
          fullname,
          interface_implementers: names.map((name) => ({ fullname: name, type_url: urlOf(name) })),
        })),
      },
    }),
    [`${APP}/GetConfigurationDescriptor`]: () => ({
      config: { bech32_account_address_prefix: ACCOUNT_PREFIX },
    }),
    [`${APP}/GetQueryServicesDescriptor`]: () => ({
      queries: { query_services: queryServices(queries()) },
    }),
    [`${APP}/GetTxDescriptor`]: () => ({
      tx: {
        fullname: "cosmos.tx.v1beta1.Tx",
        msgs: MESSAGES.map((name) => ({ msg_type_url: urlOf(name) })),
      },
    }),
  };
}

/** Like the SDK, none for an interface that there is not. */
function implementers(interfaceName: string): readonly string[] {
  return IMPLEMENTERS.get(interfaceName) ?? [];
}

function urlOf(name: string): string {
  return `/${name}`;
}

/** Services with those of their methods that are answered here. */
function queryServices(queries: QueryRegistry): ProtoMessage[] {
  return queries.services().map(({ name, methods }) => ({
    fullname: name,
    is_module: name.endsWith(".Query"),
    methods: [...methods.values()]
      .filter(({ path }) => queries.find(path) !== undefined)
      .map((method) => ({ name: method.name, full_query_path: method.path })),
  }));
}
