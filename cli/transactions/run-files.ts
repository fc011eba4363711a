/** `causeway tx sign|broadcast|simulate|encode|decode`: transactions that lie in files. */
import { decodeMessage, encodeMessage } from "../../chain/protobuf/codec.js";
import { MessageReader } from "../../chain/protobuf/values.js";
import { loadDescriptors } from "../../runtime/files/descriptor-set.js";
import { createNamedFile, SECRET_MODE } from "../home/home-file.js";
import { print } from "../queries/run.js";
import { readText } from "./commands/staking.js";
import {
  assertSigner,
  draftOf,
  parseTransaction,
  signDraft,
  signedJson,
  signerOfDraft,
} from "./document.js";
import {
  broadcast,
  chainIdOf,
  estimate,
  keySources,
  nodeOf,
  outputOf,
  sequenceOf,
  signModeOf,
  type TxContext,
} from "./run.js";
import { findSigner } from "./signer.js";
import { type Flags, flagText, usage } from "./values.js";

const TX = "cosmos.tx.v1beta1.Tx";
const RAW = "cosmos.tx.v1beta1.TxRaw";

/** `tx sign FILE`: the transaction of a file with the signature of `--from`, as JSON. */
export async function runSign(context: TxContext, file: string, flags: Flags): Promise<number> {
  const types = loadDescriptors();
  const draft = draftOf(types, parseTransaction(types, readText(file), file));
  const signer = findSigner(flagText(flags, "from"), keySources(context, flags));
  assertSigner(types, draft, signer.address);
  const node = flags["offline"] === true ? undefined : await nodeOf(context, flags);
  const place = {
    chainId: await chainIdOf(flags, node),
    sequence: await sequenceOf(flags, node, signer),
    mode: signModeOf(flags),
  };
  const bytes = signDraft(types, draft, place, signer.privateKey());
  const json = signedJson(types, bytes);
  const out = flagText(flags, "outputDocument");
  if (out === undefined) context.print(json);
  // Anybody may send a transaction that is signed.
  else if (!(await createNamedFile(out, `${json}\n`, SECRET_MODE))) {
    throw usage(`${out} is there already: choose another file for --output-document.`);
  }
  return 0;
}

/** `tx broadcast FILE`: sends a signed transaction; again and again the same one. */
export async function runBroadcast(
  context: TxContext,
  file: string,
  flags: Flags,
): Promise<number> {
  return broadcast(context, flags, await nodeOf(context, flags), bytesOfFile(file));
}

/** `tx simulate FILE`: the gas that a transaction would use. */
export async function runSimulate(context: TxContext, file: string, flags: Flags): Promise<number> {
  const types = loadDescriptors();
  const draft = draftOf(types, parseTransaction(types, readText(file), file));
  const node = await nodeOf(context, flags);
  const sequence = await sequenceOf(flags, node, { address: signerOfDraft(types, draft) });
  const gas = await estimate(node, { gasAdjustment: "1", ...flags }, draft, sequence);
  print(context, outputOf(flags), { gas_info: { gas_used: gas.toString() } });
  return 0;
}

/** `tx encode FILE`: the bytes of a transaction in base64. */
export function runEncode(context: TxContext, file: string): number {
  context.print(Buffer.from(bytesOfFile(file)).toString("base64"));
  return 0;
}

/** `tx decode BASE64`: a transaction as JSON, or as `--output` says; `-x` for hex. */
export function runDecode(context: TxContext, text: string, flags: Flags): number {
  const isHex = flags["hex"] === true;
  const form = isHex ? /^(0x)?([0-9a-fA-F]{2})+$/ : /^[A-Za-z0-9+/]+={0,2}$/;
  if (!form.test(text)) throw usage(`tx decode takes ${isHex ? "hex" : "base64"}.`);
  const bytes = Buffer.from(text.replace(/^0x/, ""), isHex ? "hex" : "base64");
  const json = signedJson(loadDescriptors(), bytes);
  const { output = "json" } = outputOf(flags);
  if (output === "json") context.print(json);
  else print(context, { output }, JSON.parse(json));
  return 0;
}

/** A transaction's file as `TxRaw`. */
function bytesOfFile(file: string): Uint8Array {
  const types = loadDescriptors();
  const tx = new MessageReader(
    decodeMessage(types.message(TX), parseTransaction(types, readText(file), file)),
  );
  const signatures = tx.value["signatures"] ?? [];
  return encodeMessage(types.message(RAW), {
    body_bytes: encodeMessage(
      types.message("cosmos.tx.v1beta1.TxBody"),
      tx.submessage("body").value,
    ),
    auth_info_bytes: encodeMessage(
      types.message("cosmos.tx.v1beta1.AuthInfo"),
      tx.submessage("auth_info").value,
    ),
    signatures,
  });
}
