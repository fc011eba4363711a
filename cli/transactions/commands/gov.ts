/** `causeway tx gov` and `tx upgrade`. */
import { z } from "zod";
import { toBech32 } from "../../../chain/address.js";
import { DECIMAL_ONE, decimalText } from "../../../chain/encoding/decimal.js";
import { ChainError, errorMessage } from "../../../chain/errors.js";
import { JsonReader } from "../../../chain/protobuf/json-reader.js";
import type { ProtoMessage } from "../../../chain/protobuf/values.js";
import { STAKING_CONTRACTS } from "../../../chain/staking/calls.js";
import { loadDescriptors } from "../../../runtime/files/descriptor-set.js";
import { packMessages, type TxMessage } from "../document.js";
import type { MessageInput, TxCommand } from "../tx-command.js";
import {
  accountIn,
  amountIn,
  coin,
  flagText,
  fractionIn,
  integerIn,
  parseJson,
  usage,
} from "../values.js";
import { readText } from "./staking.js";

const GOV = "cosmos.gov.v1";

/** Answers to a proposal by the names that people type. */
const OPTIONS: ReadonlyMap<string, number> = new Map([
  ["yes", 1],
  ["abstain", 2],
  ["no", 3],
  ["no_with_veto", 4],
]);

const METADATA = ["--metadata <text>", "what is stored with it"] as const;

/** The account of governance, which proposed messages are signed by. */
const AUTHORITY = STAKING_CONTRACTS.gov;

/** Of the SDK's checks of `--upgrade-info`; the chain stores it as it stands. */
const NO_CHECK = "taken as in the SDK's command line: what operators need is not checked here";

const UPGRADE_OPTIONS = [
  ["--title <text>", "title of the proposal"],
  ["--summary <text>", "its summary"],
  ["--deposit <coins>", "first deposit, 1000atoken"],
  ["--expedited", "ask for the shorter vote"],
  ["--authority <account>", "taken as in the SDK's command line: governance, and no other account"],
  METADATA,
] as const;

/** The commands. */
export const GOV_COMMANDS: readonly TxCommand[] = [
  {
    words: "gov submit-proposal",
    description: "propose the messages of a JSON file with title, summary and deposit",
    args: ["<proposal.json>"],
    messages: submit,
  },
  {
    words: "gov deposit",
    description: "deposit coins for a proposal",
    args: ["<proposal-id>", "<amount>"],
    messages: ({ args: [id = "", amount = ""], signer }) => [
      {
        name: `${GOV}.MsgDeposit`,
        fields: {
          proposal_id: proposalId(id),
          depositor: toBech32(signer),
          amount: [coin(amountIn(amount, "The amount"))],
        },
      },
    ],
  },
  {
    words: "gov vote",
    description: "vote yes, no, abstain or no_with_veto (no-with-veto)",
    args: ["<proposal-id>", "<option>"],
    options: [METADATA],
    messages: ({ args: [id = "", option = ""], flags, signer }) => [
      {
        name: `${GOV}.MsgVote`,
        fields: {
          proposal_id: proposalId(id),
          voter: toBech32(signer),
          option: voteOption(option),
          metadata: flagText(flags, "metadata") ?? "",
        },
      },
    ],
  },
  {
    words: "gov weighted-vote",
    description: "divide a vote: yes=0.6,no=0.3,abstain=0.1",
    args: ["<proposal-id>", "<options>"],
    options: [METADATA],
    messages: ({ args: [id = "", options = ""], flags, signer }) => [
      {
        name: `${GOV}.MsgVoteWeighted`,
        fields: {
          proposal_id: proposalId(id),
          voter: toBech32(signer),
          options: weightedOptions(options),
          metadata: flagText(flags, "metadata") ?? "",
        },
      },
    ],
  },
  {
    words: "gov cancel-proposal",
    description: "withdraw a proposal of one's own; a part of its deposits is lost",
    args: ["<proposal-id>"],
    messages: ({ args: [id = ""], signer }) => [
      {
        name: `${GOV}.MsgCancelProposal`,
        fields: { proposal_id: proposalId(id), proposer: toBech32(signer) },
      },
    ],
  },
  {
    words: "upgrade software-upgrade",
    description: "propose that all nodes stop at a height for a new version",
    args: ["<name>"],
    options: [
      ["--upgrade-height <n>", "where the old version stops"],
      ["--upgrade-info <text>", "what operators need: where the new version is"],
      ["--no-validate", NO_CHECK],
      ["--no-checksum-required", NO_CHECK],
      ["--daemon-name <name>", NO_CHECK],
      ...UPGRADE_OPTIONS,
    ],
    messages({ args: [name = ""], flags, signer }) {
      const height = integerIn(flagText(flags, "upgradeHeight") ?? "", "--upgrade-height");
      const info = flagText(flags, "upgradeInfo") ?? "";
      const proposed = {
        name: "cosmos.upgrade.v1beta1.MsgSoftwareUpgrade",
        fields: { authority: authority(flags), plan: { name, height, info } },
      };
      return [proposalOf(proposed, { flags, signer })];
    },
  },
  {
    words: "upgrade cancel-software-upgrade",
    description: "propose to drop the plan of an upgrade",
    args: [],
    options: UPGRADE_OPTIONS,
    messages: ({ flags, signer }) => [
      proposalOf(
        {
          name: "cosmos.upgrade.v1beta1.MsgCancelUpgrade",
          fields: { authority: authority(flags) },
        },
        { flags, signer },
      ),
    ],
  },
];

function authority(flags: MessageInput["flags"]): string {
  const governance = toBech32(AUTHORITY);
  const given = flagText(flags, "authority");
  if (given === undefined || accountIn(given, "--authority") === AUTHORITY) return governance;
  throw usage(`--authority must be governance, ${governance}: no other account plans upgrades.`);
}

function proposalOf(
  proposed: TxMessage,
  { flags, signer }: Pick<MessageInput, "flags" | "signer">,
): TxMessage {
  const title = flagText(flags, "title");
  if (title === undefined) throw usage("--title must name the proposal.");
  const deposit = flagText(flags, "deposit");
  return {
    name: `${GOV}.MsgSubmitProposal`,
    fields: {
      messages: packMessages(loadDescriptors(), [proposed]),
      initial_deposit: deposit === undefined ? [] : [coin(amountIn(deposit, "--deposit"))],
      proposer: toBech32(signer),
      metadata: flagText(flags, "metadata") ?? "",
      title,
      summary: flagText(flags, "summary") ?? title,
      expedited: flags["expedited"] === true,
    },
  };
}

/** The SDK's file of a proposal. */
const proposalSchema = z.strictObject({
  messages: z.array(z.looseObject({ "@type": z.string() })).default([]),
  metadata: z.string().default(""),
  deposit: z.string().default(""),
  title: z.string().default(""),
  summary: z.string().default(""),
  expedited: z.boolean().default(false),
});

function submit({ args: [file = ""], signer }: MessageInput): readonly TxMessage[] {
  const { deposit, messages, ...texts } = parseJson(readText(file), file, proposalSchema);
  const types = loadDescriptors();
  const reader = new JsonReader(types);
  let anys: readonly ProtoMessage[];
  try {
    anys = messages.map((json) => reader.message(types.message("google.protobuf.Any"), json));
  } catch (error) {
    if (!(error instanceof ChainError)) throw error;
    throw usage(`${file} proposes what is no message: ${errorMessage(error)}.`);
  }
  const fields = {
    ...texts,
    messages: anys,
    initial_deposit: deposit === "" ? [] : [coin(amountIn(deposit, "deposit"))],
    proposer: toBech32(signer),
  };
  return [{ name: `${GOV}.MsgSubmitProposal`, fields }];
}

function proposalId(text: string): bigint {
  const id = integerIn(text, "The proposal's id");
  if (id > 0n) return id;
  throw usage("Proposals are counted from 1.");
}

function voteOption(text: string): number {
  const name = text
    .toLowerCase()
    .replace(/^vote_option_/, "")
    .replace(/^no-?with-?veto$/, "no_with_veto");
  const option = OPTIONS.get(name);
  if (option !== undefined) return option;
  throw usage(`A vote is yes, no, abstain or no_with_veto, not "${text.slice(0, 50)}".`);
}

/** Weights as decimals that add up to 1. */
function weightedOptions(text: string): ProtoMessage[] {
  const parts = text.split(",").map((part) => part.trim().split("="));
  const weights = parts.map(([name = "", weight = ""]) => ({
    option: voteOption(name),
    weight: fractionIn(weight, "A weight"),
  }));
  const sum = weights.reduce((total, { weight }) => total + weight, 0n);
  if (sum !== DECIMAL_ONE) throw usage("The weights of a vote must add up to 1.");
  return weights.map(({ option, weight }) => ({ option, weight: decimalText(weight) }));
}
