/** 0x805: proposals, deposits, votes. */
import type { AnyMessage } from "../../../chain/cosmos/field-schema.js";
import { schemaOf } from "../../../chain/cosmos/message-schemas.js";
import { anyOfProtoJson } from "../../../chain/cosmos/proto-json.js";
import { ChainError } from "../../../chain/errors.js";
import type { AbiValue } from "../../../chain/evm/abi/abi-values.js";
import { cancelProposal, depositOn, submitProposal } from "../../modules/gov/proposing.js";
import { plainVote, voteOn, type WeightedOption } from "../../modules/gov/voting.js";
import { fractionOfText } from "../../modules/message-fields.js";
import { handlerOf } from "../../modules/message-router.js";
import { abiNative, actorOf, type NativeFunction, refusal, SUCCESS } from "./abi-native.js";
import { GOV_VIEWS } from "./gov-views.js";
import { GOV as ABI, logOf } from "./native-abis.js";
import type { NativeCall } from "./native-call.js";
import { DATA_WORD_GAS, JSON_BYTE_NS } from "./native-gas.js";
import { BASE_DENOM } from "../../../chain/units.js";

const functions: Readonly<Record<string, NativeFunction>> = {
  submitProposal(args, call) {
    const proposer = actorOf(args, "proposer", call);
    const json = args.bytes("jsonProposal");
    call.charge(DATA_WORD_GAS * Math.ceil(json.length / 32), JSON_BYTE_NS * json.length);
    const hasDeposit = args.structs("deposit").length > 0;
    const { id } = submitProposal(
      call.context(),
      {
        ...proposalOf(json),
        proposer,
        initialDepositAtoken: hasDeposit ? args.coins("deposit") : 0n,
      },
      handlerOf,
    );
    log(call, "SubmitProposal", { proposer, proposalId: id });
    return [id];
  },
  cancelProposal(args, call) {
    const proposer = actorOf(args, "proposer", call);
    const proposalId = args.integer("proposalId");
    cancelProposal(call.context(), proposalId, proposer);
    log(call, "CancelProposal", { proposer, proposalId });
    return SUCCESS;
  },
  deposit(args, call) {
    const depositor = actorOf(args, "depositor", call);
    const proposalId = args.integer("proposalId");
    const amountAtoken = args.coins("amount");
    depositOn(call.context(), proposalId, { depositor, amountAtoken });
    const amount = [{ denom: BASE_DENOM, amount: amountAtoken }];
    log(call, "Deposit", { depositor, proposalId, amount });
    return SUCCESS;
  },
  vote(args, call) {
    const voter = actorOf(args, "voter", call);
    const proposalId = args.integer("proposalId");
    const option = args.integer("option");
    const options = plainVote(Number(option));
    voteOn(call.context(), proposalId, { voter, options, metadata: args.text("metadata") });
    log(call, "Vote", { voter, proposalId, option });
    return SUCCESS;
  },
  voteWeighted(args, call) {
    const voter = actorOf(args, "voter", call);
    const proposalId = args.integer("proposalId");
    const parts = args.structs("options");
    const options: WeightedOption[] = parts.map((part) => ({
      option: Number(part.integer("option")),
      weight: fractionOfText(part.text("weight"), "weight"),
    }));
    voteOn(call.context(), proposalId, { voter, options, metadata: args.text("metadata") });
    const values = parts.map((part) => ({
      option: part.integer("option"),
      weight: part.text("weight"),
    }));
    log(call, "VoteWeighted", { voter, proposalId, options: values });
    return SUCCESS;
  },
  ...GOV_VIEWS,
};

/** The contract. */
export const GOV = abiNative({ abi: ABI, module: "gov", functions });

function log(call: NativeCall, name: string, values: { readonly [name: string]: AbiValue }): void {
  call.log(logOf(ABI, name, values));
}

interface ProposalText {
  readonly messages: readonly AnyMessage[];
  readonly title: string;
  readonly summary: string;
  readonly metadata: string;
  readonly isExpedited: boolean;
}

/** A proposal as `tx gov submit-proposal` takes it, without its deposit. Throws `MessageFailure`. */
function proposalOf(json: Uint8Array): ProposalText {
  const fields = objectIn(json);
  const { messages = [], expedited = false } = fields;
  if (!Array.isArray(messages) || typeof expedited !== "boolean") {
    throw refusal("invalid proposal JSON: messages must be a list, expedited true or false");
  }
  return {
    messages: messages.map((message: unknown, index) => messageIn(message, index)),
    title: textIn(fields, "title"),
    summary: textIn(fields, "summary"),
    metadata: textIn(fields, "metadata"),
    isExpedited: expedited,
  };
}

const FIELDS = new Set(["messages", "metadata", "title", "summary", "expedited"]);

function objectIn(json: Uint8Array): Readonly<Record<string, unknown>> {
  const value = parsed(json);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw refusal("invalid proposal JSON: an object is expected");
  }
  const stranger = Object.keys(value).find((name) => !FIELDS.has(name));
  if (stranger !== undefined) {
    throw refusal(`invalid proposal JSON: there is no field ${stranger.slice(0, 100)}`);
  }
  return value as Readonly<Record<string, unknown>>;
}

function parsed(json: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(json));
  } catch {
    throw refusal("invalid proposal JSON");
  }
}

function textIn(fields: Readonly<Record<string, unknown>>, name: string): string {
  const value = fields[name] ?? "";
  if (typeof value === "string") return value;
  throw refusal(`invalid proposal JSON: ${name} must be a text`);
}

function messageIn(value: unknown, index: number): AnyMessage {
  try {
    return anyOfProtoJson(value, schemaOf);
  } catch (error) {
    if (!(error instanceof ChainError)) throw error;
    throw refusal(`message ${index}: ${error.message.slice(0, 200)}`);
  }
}
