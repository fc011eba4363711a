/** `causeway tx staking`, and `tx validator register`, which is the same registration (D15). */
import { existsSync, readFileSync } from "node:fs";
import { z } from "zod";
import { operatorText, toBech32 } from "../../../chain/address.js";
import { encodeMessage } from "../../../chain/protobuf/codec.js";
import type { ProtoMessage } from "../../../chain/protobuf/values.js";
import { parseValidatorIdentity } from "../../../node/consensus/signing/validator-key.js";
import { loadDescriptors } from "../../../runtime/files/descriptor-set.js";
import { fileCause } from "../../errors.js";
import { homePaths } from "../../home/home.js";
import type { MessageInput, TxCommand } from "../tx-command.js";
import {
  amountIn,
  atokenIn,
  coin,
  consensusKeyBytes,
  consensusKeySchema,
  ED25519,
  type Flags,
  flagText,
  fractionIn,
  integerIn,
  operatorIn,
  parseJson,
  usage,
} from "../values.js";

const MODULE = "cosmos.staking.v1beta1";

/** What an edit leaves as it is. */
const DO_NOT_MODIFY = "[do-not-modify]";

/** Flags of texts that a validator says of itself; the moniker has one of its own. */
const TEXT_OPTIONS = [
  ["--identity <text>", "signature of an identity, such as of Keybase"],
  ["--website <url>", "its page"],
  ["--security-contact <text>", "where weaknesses are told"],
  ["--details <text>", "more about it"],
] as const;

const REGISTER_OPTIONS = [
  ["--amount <coins>", "self-delegation, 1000atoken"],
  ["--pubkey <json>", "consensus key (else that of the home's validator)"],
  ["--moniker <name>", "what people call it"],
  ["--commission-rate <rate>", "its share of rewards (default 0.1)"],
  ["--commission-max-rate <rate>", "the most that it may ever be (default 0.2)"],
  ["--commission-max-change-rate <rate>", "the most by which it may rise in a day (default 0.01)"],
  ["--min-self-delegation <n>", "least self-delegation, atoken (default 1)"],
  ...TEXT_OPTIONS,
] as const;

/** The commands. */
export const STAKING_COMMANDS: readonly TxCommand[] = [
  {
    words: "staking create-validator",
    description:
      "register as a validator: burns the chain's fee and delegates; terms by flags or in a JSON file",
    args: ["[validator.json]"],
    options: REGISTER_OPTIONS,
    messages: register,
  },
  {
    words: "validator register",
    description: "the same as staking create-validator",
    args: ["[validator.json]"],
    options: REGISTER_OPTIONS,
    messages: register,
  },
  {
    words: "staking edit-validator",
    description: "change what a validator says of itself, or its commission",
    args: [],
    options: [
      ["--new-moniker <name>", "what people call it"],
      ["--moniker <name>", "the same, as older releases have it"],
      ["--commission-rate <rate>", "its share of rewards"],
      ["--min-self-delegation <n>", "least self-delegation, atoken; it only rises"],
      ...TEXT_OPTIONS,
    ],
    messages: edit,
  },
  {
    words: "staking delegate",
    description: "delegate coins to a validator",
    args: ["<validator>", "<amount>"],
    messages: (input) => [{ name: `${MODULE}.MsgDelegate`, fields: delegation(input) }],
  },
  {
    words: "staking unbond",
    aliases: ["undelegate"],
    description: "take stake back; it comes when the unbonding time is over",
    args: ["<validator>", "<amount>"],
    messages: (input) => [{ name: `${MODULE}.MsgUndelegate`, fields: delegation(input) }],
  },
  {
    words: "staking redelegate",
    description: "move stake from one validator to another",
    args: ["<from-validator>", "<to-validator>", "<amount>"],
    messages: ({ args: [from = "", to = "", amount = ""], signer }) => [
      {
        name: `${MODULE}.MsgBeginRedelegate`,
        fields: {
          delegator_address: toBech32(signer),
          validator_src_address: operatorIn(from),
          validator_dst_address: operatorIn(to),
          amount: coin(amountIn(amount, "The amount")),
        },
      },
    ],
  },
  {
    words: "staking cancel-unbond",
    description: "let stake that began to leave at a height stay",
    args: ["<validator>", "<amount>", "<creation-height>"],
    messages: ({ args, signer }) => [
      {
        name: `${MODULE}.MsgCancelUnbondingDelegation`,
        fields: {
          ...delegation({ args, signer }),
          creation_height: integerIn(args[2] ?? "", "The height"),
        },
      },
    ],
  },
];

function delegation({
  args: [validator = "", amount = ""],
  signer,
}: Pick<MessageInput, "args" | "signer">): ProtoMessage {
  return {
    delegator_address: toBech32(signer),
    validator_address: operatorIn(validator),
    amount: coin(amountIn(amount, "The amount")),
  };
}

/** The terms of a registration as the SDK's file and flags name them; all texts. */
const termsSchema = z.strictObject({
  pubkey: consensusKeySchema.optional(),
  amount: z.string().optional(),
  moniker: z.string().optional(),
  identity: z.string().optional(),
  website: z.string().optional(),
  security: z.string().optional(),
  "security-contact": z.string().optional(),
  details: z.string().optional(),
  "commission-rate": z.string().optional(),
  "commission-max-rate": z.string().optional(),
  "commission-max-change-rate": z.string().optional(),
  "min-self-delegation": z.string().optional(),
});

type Terms = z.infer<typeof termsSchema>;

function register(input: MessageInput) {
  const [file] = input.args;
  const terms = { ...(file === undefined ? {} : termsOfFile(file)), ...termsOfFlags(input.flags) };
  const { amount, moniker } = terms;
  if (amount === undefined) throw usage("--amount must say how much is self-delegated.");
  if (moniker === undefined || moniker === "") throw usage("--moniker must name the validator.");
  const { signer } = input;
  const rate = (name: "rate" | "max-rate" | "max-change-rate", first: string) =>
    fractionIn(terms[`commission-${name}`] ?? first, `--commission-${name}`);
  const fields = {
    description: {
      moniker,
      identity: terms.identity ?? "",
      website: terms.website ?? "",
      security_contact: terms["security-contact"] ?? terms.security ?? "",
      details: terms.details ?? "",
    },
    commission: {
      rate: rate("rate", "0.1"),
      max_rate: rate("max-rate", "0.2"),
      max_change_rate: rate("max-change-rate", "0.01"),
    },
    min_self_delegation: atokenIn(terms["min-self-delegation"] ?? "1", "--min-self-delegation"),
    delegator_address: toBech32(signer),
    validator_address: operatorText(signer),
    pubkey: consensusKey(terms, input.home),
    value: coin(amountIn(amount, "--amount")),
  };
  return [{ name: `${MODULE}.MsgCreateValidator`, fields }];
}

function termsOfFile(file: string): Terms {
  return parseJson(readText(file), file, termsSchema);
}

function termsOfFlags(flags: Flags): Terms {
  const names = Object.keys(termsSchema.shape).filter((name) => name !== "pubkey");
  const texts = names.map((name) => {
    const camel = name.replace(/-(.)/g, (_match, letter: string) => letter.toUpperCase());
    return [name, flagText(flags, camel)] as const;
  });
  const given = Object.fromEntries(texts.filter(([, text]) => text !== undefined));
  const pubkey = flagText(flags, "pubkey");
  if (pubkey === undefined) return given;
  return { ...given, pubkey: parseJson(pubkey, "--pubkey", consensusKeySchema) };
}

/** The key that will sign blocks: the one given, else that of the home. */
function consensusKey({ pubkey }: Terms, home: string): ProtoMessage {
  return anyOfKey(pubkey === undefined ? keyOfHome(home) : consensusKeyBytes(pubkey));
}

function keyOfHome(home: string): Uint8Array {
  const file = homePaths(home).validatorKey;
  if (!existsSync(file)) {
    throw usage(`--pubkey must give the consensus key: ${home} has no validator key of its own.`);
  }
  return Buffer.from(parseValidatorIdentity(readText(file), file).publicKey, "base64");
}

function anyOfKey(key: Uint8Array): ProtoMessage {
  const type = loadDescriptors().message(ED25519);
  return { type_url: `/${ED25519}`, value: encodeMessage(type, { key }) };
}

function edit({ flags, signer }: MessageInput) {
  const text = (name: string) => flagText(flags, name) ?? DO_NOT_MODIFY;
  const rate = flagText(flags, "commissionRate");
  const least = flagText(flags, "minSelfDelegation");
  const fields = {
    description: {
      moniker: flagText(flags, "newMoniker") ?? text("moniker"),
      identity: text("identity"),
      website: text("website"),
      security_contact: text("securityContact"),
      details: text("details"),
    },
    validator_address: operatorText(signer),
    ...(rate !== undefined && { commission_rate: fractionIn(rate, "--commission-rate") }),
    ...(least !== undefined && { min_self_delegation: atokenIn(least, "--min-self-delegation") }),
  };
  return [{ name: `${MODULE}.MsgEditValidator`, fields }];
}

/** A file that a person names. Throws USAGE. */
export function readText(file: string): string {
  try {
    return readFileSync(file === "-" ? 0 : file, "utf8");
  } catch (cause) {
    throw usage(`Cannot read ${file}: ${fileCause(cause)}.`);
  }
}
