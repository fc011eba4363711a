/** Messages of governance that persons send, of v1 and v1beta1 (x/gov `keeper/msg_server.go`). */
import { ProtoWriter } from "../../chain/protobuf/wire.js";
import { accountText } from "../../chain/abci-event.js";
import { coinsText } from "../../chain/cosmos/ante.js";
import { type Coin, coinsOf, listOf, textOf } from "../../chain/cosmos/cosmos-transaction.js";
import {
  type AnyMessage,
  isAny,
  type ProtoMessage,
  type ProtoValue,
} from "../../chain/cosmos/field-schema.js";
import { schemaOf } from "../../chain/cosmos/message-schemas.js";
import { SDK_CODE } from "../../chain/cosmos/sdk-fault.js";
import { BASE_DENOM } from "../../chain/units.js";
import { SDK_REFUSALS_VERSION } from "../settings/app-version.js";
import {
  cancelProposal,
  depositOn,
  type Submission,
  submitProposal,
  takingDeposits,
} from "./gov/proposing.js";
import { govFailure } from "./gov/gov-failure.js";
import { assertContentTexts } from "./gov/proposal-texts.js";
import { plainVote, voteOn, type WeightedOption } from "./gov/voting.js";
import {
  assertLegacyContentFirst,
  EXEC_LEGACY_CONTENT,
  MISSING_CONTENT,
} from "./governed-messages.js";
import type { HandlerOf, MessageContext, MessageHandler } from "./message-context.js";
import {
  addressOf,
  amountOfCoins,
  fractionOfText,
  isPositive,
  messageFailure,
  NO_RESPONSE,
  timestamp,
} from "./message-fields.js";
import { stakedHandler } from "./staked-handler.js";
import { MODULE_ACCOUNTS } from "./system-storage.js";

/** Gas of messages beside bytes and signature: by the slots that they write. */
const GAS = {
  submit: 90_000n,
  submitWord: 2_000n,
  deposit: 60_000n,
  vote: 35_000n,
  cancel: 80_000n,
};

/** Value of `message.module` (as in the SDK). */
const MODULE = "gov";

/** Handlers by message. */
export function govHandlers(handlerOf: HandlerOf): (readonly [string, MessageHandler])[] {
  const of = (version: string, name: string, gas: bigint, run: MessageHandler["run"]) => {
    const handler = stakedHandler({ module: MODULE, name, gas }, run);
    return [`cosmos.gov.${version}.${name}`, handler] as const;
  };
  const common = ["v1", "v1beta1"].flatMap((version) => [
    of(version, "MsgDeposit", GAS.deposit, deposit),
    of(version, "MsgVote", GAS.vote, (message, context) => {
      return castVote(message, context, plainVote(Number(message["option"] ?? 0)));
    }),
    of(version, "MsgVoteWeighted", GAS.vote, (message, context) => {
      const weightOf = version === "v1" ? fractionOfText : unitsOfText;
      const options = listOf(message["options"]).map((one) => ({
        option: Number(one["option"] ?? 0),
        weight: weightOf(textOf(one, "weight"), "weight"),
      }));
      return castVote(message, context, options);
    }),
  ]);
  const submit = (message: ProtoMessage, context: MessageContext, made: SubmissionParts) => {
    const coins = coinsOf(message["initial_deposit"]);
    const submission = {
      ...made,
      proposer: addressOf(textOf(message, "proposer"), "proposer"),
      initialDepositAtoken: coins.length === 0 ? 0n : depositOf(coins, context),
    };
    useGasOfTexts(context, submission);
    const { id } = submitProposal(context, submission, handlerOf);
    return new ProtoWriter().integer(1, id).finish();
  };
  return [
    ...common,
    of("v1", "MsgSubmitProposal", GAS.submit, (message, context) =>
      submit(message, context, {
        messages: anysOf(message["messages"]),
        title: textOf(message, "title"),
        summary: textOf(message, "summary"),
        metadata: textOf(message, "metadata"),
        isExpedited: message["expedited"] === true,
      }),
    ),
    of("v1beta1", "MsgSubmitProposal", GAS.submit, (message, context) =>
      submit(message, context, legacyParts(message, context)),
    ),
    of("v1", "MsgCancelProposal", GAS.cancel, (message, context) => {
      const id = idOf(message);
      cancelProposal(context, id, addressOf(textOf(message, "proposer"), "proposer"));
      return new ProtoWriter()
        .integer(1, id)
        .message(2, timestamp(context.timeMs))
        .integer(3, context.height)
        .finish();
    }),
  ];
}

type SubmissionParts = Omit<Submission, "proposer" | "initialDepositAtoken">;

function anysOf(value: ProtoValue): readonly AnyMessage[] {
  return Array.isArray(value) ? (value as readonly ProtoValue[]).filter(isAny) : [];
}

/** A proposal of v1beta1 has one content; executing it is its only message. */
function legacyParts(
  message: ProtoMessage,
  version: Pick<MessageContext, "appVersion">,
): SubmissionParts {
  const { content } = message;
  const isFirst = version.appVersion < SDK_REFUSALS_VERSION;
  if (!isAny(content)) {
    throw isFirst
      ? messageFailure(SDK_CODE.invalidRequest, MISSING_CONTENT)
      : govFailure("invalidContent", MISSING_CONTENT);
  }
  const title = textOf(content.message, "title");
  const summary = textOf(content.message, "description");
  if (isFirst) assertLegacyContentFirst(version, content);
  else assertContentTexts(title, summary);
  const typeUrl = `/${EXEC_LEGACY_CONTENT}`;
  const schema = schemaOf(typeUrl);
  if (schema === undefined) throw new RangeError(`${typeUrl} is not described`);
  const authority = accountText(MODULE_ACCOUNTS.gov);
  return {
    messages: [{ typeUrl, schema, message: { content, authority } }],
    title,
    summary,
    metadata: "",
    isExpedited: false,
  };
}

/** Texts are written to the state, word by word. */
function useGasOfTexts(context: MessageContext, { title, summary, metadata }: Submission): void {
  const bytes = [title, summary, metadata].reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  context.useGas(GAS.submitWord * BigInt(Math.ceil(bytes / 32)), "MsgSubmitProposal");
}

function deposit(message: ProtoMessage, context: MessageContext): Uint8Array {
  const depositor = addressOf(textOf(message, "depositor"), "depositor");
  const coins = coinsOf(message["amount"]);
  const id = idOf(message);
  if (context.appVersion >= SDK_REFUSALS_VERSION) {
    assertPositive(coins);
    takingDeposits(context, id);
  }
  depositOn(context, id, { depositor, amountAtoken: depositOf(coins, context) });
  return NO_RESPONSE;
}

/** The amount of a deposit, atoken. Throws `MessageFailure`. */
function depositOf(coins: readonly Coin[], { appVersion }: MessageContext): bigint {
  if (appVersion < SDK_REFUSALS_VERSION) return amountOfCoins(coins);
  assertPositive(coins);
  if (coins.every(({ denom }) => denom === BASE_DENOM)) return amountOfCoins(coins);
  const accepted = `but gov accepts only the following denom(s): [${BASE_DENOM}]`;
  throw govFailure("depositDenom", `deposited ${coinsText(coins).slice(0, 200)}, ${accepted}`);
}

function assertPositive(coins: readonly Coin[]): void {
  if (coins.length > 0 && coins.every(isPositive)) return;
  throw messageFailure(SDK_CODE.invalidCoins, coinsText(coins).slice(0, 200));
}

function castVote(
  message: ProtoMessage,
  context: MessageContext,
  options: readonly WeightedOption[],
): Uint8Array {
  const voter = addressOf(textOf(message, "voter"), "voter");
  voteOn(context, idOf(message), { voter, options, metadata: textOf(message, "metadata") });
  return NO_RESPONSE;
}

function idOf(message: ProtoMessage): bigint {
  const id = message["proposal_id"];
  return typeof id === "bigint" ? id : 0n;
}

/** A decimal of v1beta1: an integer text of 10^-18. */
function unitsOfText(text: string): bigint {
  return /^[0-9]{1,40}$/.test(text) ? BigInt(text) : 0n;
}
