/** The construction endpoints that need no network: same input, same bytes, no state. */
import { publicKeyToAddress, toBech32 } from "../../chain/address.js";
import { bytesToHex, type Hash32 } from "../../chain/hex.js";
import type { Network } from "../../chain/networks.js";
import { buildSigned, buildSigningDigest } from "../../chain/signing/legacy-transaction.js";
import type { HttpReply } from "../../runtime/http/http-reply.js";
import type { HttpRoute } from "../../runtime/http/http-route.js";
import { toRoute } from "../rosetta/endpoint.js";
import { SidecarError } from "../rosetta/errors.js";
import { accountIdentifier } from "../rosetta/identifiers.js";
import { type Fields, fault, type Place, readFields } from "../rosetta/request-fields.js";
import { readFlag, readMaybe, readText } from "../rosetta/request-fields.js";
import { checkChosenData } from "../rosetta/evm-call.js";
import { checkIntent, intentOperations, parseIntent } from "./intent.js";
import {
  type ConstructionContext,
  describeFacts,
  encodeUnsigned,
  parseFacts,
  parseSigned,
  parseUnsigned,
  toLegacyIntent,
} from "./opaque-tx.js";
import { encodeOptions, parseOverrides } from "./options.js";
import type { TokenRegistry } from "../rosetta/token-registry.js";
import { checkPayerKeys, checkSignatures, parseKey, SIGNATURE_TYPE } from "./signature.js";
import { checkStaticRules } from "./static-rules.js";

type OfflineHandler = (fields: Fields, context: ConstructionContext) => object;

/** All routes of one network. */
export function offlineRoutes(network: Network, registry: TokenRegistry): HttpRoute[] {
  const context: ConstructionContext = { network, registry };
  const route = (path: string, fields: readonly string[], handler: OfflineHandler): HttpRoute =>
    toRoute(
      {
        path: `/construction/${path}`,
        fields,
        handler: (given): Promise<HttpReply> => Promise.resolve({ body: handler(given, context) }),
      },
      network,
    );
  return [
    route("derive", ["public_key", "metadata"], derive),
    route(
      "preprocess",
      ["operations", "metadata", "max_fee", "suggested_fee_multiplier"],
      preprocess,
    ),
    route("payloads", ["operations", "metadata", "public_keys"], payloads),
    route("combine", ["unsigned_transaction", "signatures"], combine),
    route("parse", ["signed", "transaction"], parse),
    route("hash", ["signed_transaction"], hash),
  ];
}

/** Public key to account; the bech32 form is told beside it, never inside the identity. */
function derive(fields: Fields): object {
  const place = { at: "metadata" };
  const metadata = readMaybe(fields["metadata"], place, readFields) ?? {};
  if (Object.keys(metadata).length > 0) throw fault(place, "nothing here");
  const address = publicKeyToAddress(parseKey(fields["public_key"], { at: "public_key" }));
  return {
    account_identifier: accountIdentifier(address),
    metadata: { bech32: toBech32(address) },
  };
}

function preprocess(fields: Fields, { registry }: ConstructionContext): object {
  const intent = parseIntent(fields["operations"], registry);
  const overrides = parseOverrides(fields, registry);
  const place: Place = { at: "metadata.data", code: "INVALID_METADATA" };
  checkChosenData(intent, overrides.data, { registry, place });
  checkStaticRules(intent, overrides);
  return { options: encodeOptions(intent, overrides) };
}

function payloads(fields: Fields, context: ConstructionContext): object {
  const intent = parseIntent(fields["operations"], context.registry);
  const unsigned = { intent, facts: parseFacts(fields["metadata"], intent, context) };
  checkPayerKeys(fields["public_keys"], intent.from);
  const digest = buildSigningDigest(toLegacyIntent(unsigned));
  return {
    unsigned_transaction: encodeUnsigned(unsigned),
    payloads: [
      {
        account_identifier: accountIdentifier(intent.from),
        hex_bytes: bytesToHex(digest).slice(2),
        signature_type: SIGNATURE_TYPE,
      },
    ],
  };
}

function combine(fields: Fields, context: ConstructionContext): object {
  const text = readText(fields["unsigned_transaction"], { at: "unsigned_transaction" });
  const unsigned = parseUnsigned(text, context);
  const legacy = toLegacyIntent(unsigned);
  const expected = { digest: buildSigningDigest(legacy), from: unsigned.intent.from };
  const signature = checkSignatures(fields["signatures"], expected);
  const signed = bytesToHex(buildSigned(legacy, signature).raw);
  // Read back as a stranger would: what leaves here is what the chain will see.
  if (encodeUnsigned(parseSigned(signed, context)) !== text) throw new SidecarError("INTERNAL");
  return { signed_transaction: signed };
}

/**
 * What a transaction does. Only coins that somebody signed to himself are told though no operations ask for
 * them: they are a CALL all the same.
 */
function parse(fields: Fields, context: ConstructionContext): object {
  const { registry } = context;
  const text = readText(fields["transaction"], { at: "transaction" });
  const isSigned = readFlag(fields["signed"], { at: "signed" });
  const { intent, facts } = isSigned ? parseSigned(text, context) : parseUnsigned(text, context);
  if (isSigned) {
    const place: Place = { at: "transaction", code: "INVALID_SIGNED_TRANSACTION" };
    if (intent.type === "CALL") checkChosenData(intent, facts.data, { registry, place });
    else checkIntent(intent, place, registry);
  }
  return {
    operations: intentOperations(intent),
    account_identifier_signers: isSigned ? [accountIdentifier(intent.from)] : [],
    metadata: describeFacts(facts),
  };
}

function hash(fields: Fields, context: ConstructionContext): object {
  const text = readText(fields["signed_transaction"], { at: "signed_transaction" });
  return transactionIdentifier(parseSigned(text, context).tx.hash);
}

/** Reply of hash and submit. */
export function transactionIdentifier(transactionHash: Hash32): object {
  return { transaction_identifier: { hash: transactionHash } };
}
