/** The construction endpoints that ask the node: metadata and submit. */
import type { Network } from "../../chain/networks.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { HttpRoute } from "../../runtime/http/http-route.js";
import type { IndexReader } from "../index/index-reader.js";
import { type Asker, ClientTurns } from "../rosetta/client-turns.js";
import { type EndpointHandler, toRoute } from "../rosetta/endpoint.js";
import { tokenAmount } from "../rosetta/identifiers.js";
import { readText } from "../rosetta/request-fields.js";
import type { TokenRegistry } from "../rosetta/token-registry.js";
import { checkNode, chooseFacts, type FeePolicy } from "./metadata.js";
import { transactionIdentifier } from "./offline.js";
import { encodeFacts, parseSigned } from "./opaque-tx.js";
import { parseOptions } from "./options.js";
import { checkPayerKeys } from "./signature.js";
import { checkStaticRules } from "./static-rules.js";
import { submitTransaction } from "./submit.js";

/** Estimates that run at once: each runs the code that it is given. What else is asked for is short. */
const ESTIMATES_AT_ONCE = 12;

/** The routes over a node. */
export function onlineRoutes(options: {
  readonly network: Network;
  readonly registry: TokenRegistry;
  readonly client: EvmClient;
  readonly feePolicy: FeePolicy;
  /** A token of which blocks tell no operations is not paid. */
  readonly quarantineOf: IndexReader["quarantineOf"];
  readonly placeOf: IndexReader["placeOf"];
  /** See `FactSource`. */
  readonly judged: () => Promise<void>;
  /** Throws while the node contradicts the index, or is behind it: its nonces are not the chain's. */
  readonly assertCurrent: () => Promise<void>;
}): HttpRoute[] {
  const { network, registry, assertCurrent } = options;
  const turns = new ClientTurns("estimates", ESTIMATES_AT_ONCE);
  const inTurns = (client: EvmClient, asker: Asker): EvmClient => ({
    ...client,
    estimateGas: (message, rpc) => turns.run(asker, () => client.estimateGas(message, rpc)),
  });
  const metadata: EndpointHandler = async (fields, request) => {
    const { signal } = request;
    const wanted = parseOptions(fields["options"], registry);
    checkPayerKeys(fields["public_keys"], wanted.intent.from);
    await assertCurrent();
    const source = { ...options, client: inTurns(options.client, request) };
    const facts = await chooseFacts(source, wanted, { signal });
    checkStaticRules(wanted.intent, facts);
    // Fees are paid in the native token, whatever is transferred.
    const fee = tokenAmount(facts.gasLimit * facts.gasPriceAtoken);
    return { body: { metadata: encodeFacts(facts), suggested_fee: [fee] } };
  };
  const submit: EndpointHandler = async (fields, { signal }) => {
    const text = readText(fields["signed_transaction"], { at: "signed_transaction" });
    const { tx } = parseSigned(text, { network, registry });
    await assertCurrent();
    await checkNode(options, { signal });
    await submitTransaction(options, tx, { signal });
    return { body: transactionIdentifier(tx.hash) };
  };
  return [
    toRoute(
      { path: "/construction/metadata", fields: ["options", "public_keys"], handler: metadata },
      network,
    ),
    toRoute(
      { path: "/construction/submit", fields: ["signed_transaction"], handler: submit },
      network,
    ),
  ];
}
