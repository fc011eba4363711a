/**
 * Messages of the bank: MsgSend and MsgMultiSend (x/bank `keeper/msg_server.go`). One denomination
 * exists, so coins of any other one are coins that nobody has.
 */
import type { Address } from "../../chain/address.js";
import { coinsOf, listOf, textOf } from "../../chain/cosmos/cosmos-transaction.js";
import type { ProtoMessage } from "../../chain/cosmos/field-schema.js";
import { SDK_CODE } from "../../chain/cosmos/sdk-fault.js";
import type { MessageContext, MessageHandler } from "./message-context.js";
import { SDK_REFUSALS_VERSION } from "../settings/app-version.js";
import { addressOf, amountOfCoins, messageFailure, NO_RESPONSE } from "./message-fields.js";
import { type MessageFailure, moduleFailure } from "./module-context.js";

/** Gas of a MsgSend beside its bytes and its signature: some 65,000 in all (D2). */
const SEND_GAS = 40_000n;

/** Gas of each output of a MsgMultiSend after the first, which costs as much as a MsgSend. */
const OUTPUT_GAS = 25_000n;

/** Refusals of MsgMultiSend in the SDK's numbers and words (x/bank `types/errors.go`). */
const MULTI_SEND_TEXTS = {
  noInputs: [2, "no inputs to send transaction"],
  noOutputs: [3, "no outputs to send transaction"],
  mismatch: [4, "sum inputs != sum outputs"],
  manySenders: [9, "multiple senders not allowed"],
} as const;

/** The failure of a rule; by the first rules all have the same code. */
function multiSendFailure(
  { appVersion }: MessageContext,
  name: keyof typeof MULTI_SEND_TEXTS,
): MessageFailure {
  const [code, words] = MULTI_SEND_TEXTS[name];
  if (appVersion < SDK_REFUSALS_VERSION) return messageFailure(SDK_CODE.invalidRequest, words);
  return moduleFailure("bank", code, words);
}

/** Handlers by message. */
export const BANK_HANDLERS: readonly (readonly [string, MessageHandler])[] = [
  ["cosmos.bank.v1beta1.MsgSend", { module: "bank", run: send }],
  ["cosmos.bank.v1beta1.MsgMultiSend", { module: "bank", run: multiSend }],
];

function assertReceives(to: Address, text: string, context: MessageContext): void {
  if (!context.isBlocked(to)) return;
  throw messageFailure(SDK_CODE.unauthorized, `${text} is not allowed to receive funds`);
}

function send(message: ProtoMessage, context: MessageContext): Uint8Array {
  context.useGas(SEND_GAS, "MsgSend");
  const from = addressOf(textOf(message, "from_address"), "from");
  const toText = textOf(message, "to_address");
  const to = addressOf(toText, "to");
  const amountAtoken = amountOfCoins(coinsOf(message["amount"]));
  assertReceives(to, toText, context);
  context.moveCoins("CALL", from, to, amountAtoken);
  return NO_RESPONSE;
}

function multiSend(message: ProtoMessage, context: MessageContext): Uint8Array {
  const outputs = listOf(message["outputs"]);
  context.useGas(SEND_GAS + OUTPUT_GAS * BigInt(Math.max(outputs.length - 1, 0)), "MsgMultiSend");
  const [input, ...others] = listOf(message["inputs"]);
  if (input === undefined) throw multiSendFailure(context, "noInputs");
  if (others.length > 0) throw multiSendFailure(context, "manySenders");
  if (outputs.length === 0) throw multiSendFailure(context, "noOutputs");
  const from = addressOf(textOf(input, "address"), "input");
  const parts = outputs.map((output) => {
    const toText = textOf(output, "address");
    const to = addressOf(toText, "output");
    assertReceives(to, toText, context);
    return { to, amountAtoken: amountOfCoins(coinsOf(output["coins"])) };
  });
  const sumAtoken = parts.reduce((sum, { amountAtoken }) => sum + amountAtoken, 0n);
  if (sumAtoken !== amountOfCoins(coinsOf(input["coins"]))) {
    throw multiSendFailure(context, "mismatch");
  }
  for (const { to, amountAtoken } of parts) context.moveCoins("CALL", from, to, amountAtoken);
  return NO_RESPONSE;
}
