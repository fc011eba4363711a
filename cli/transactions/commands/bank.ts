/** `causeway tx bank`. */
import { toBech32 } from "../../../chain/address.js";
import type { TxCommand } from "../tx-command.js";
import { accountIn, amountIn, coin, usage } from "../values.js";

/** The commands. */
export const BANK_COMMANDS: readonly TxCommand[] = [
  {
    words: "bank send",
    description: "send coins to an account",
    args: ["<from>", "<to>", "<amount>"],
    sender: "maybe",
    messages: ({ args: [to = "", amount = ""], signer }) => [
      {
        name: "cosmos.bank.v1beta1.MsgSend",
        fields: {
          from_address: toBech32(signer),
          to_address: toBech32(accountIn(to, "The recipient")),
          amount: [coin(amountIn(amount, "The amount"))],
        },
      },
    ],
  },
  {
    words: "bank multi-send",
    description: "send the same amount to each of several accounts, or with --split a share of it",
    args: ["<from>", "<to...>", "<amount>"],
    sender: "always",
    options: [["--split", "divide the amount by the recipients; a rest is not sent"]],
    messages({ args, flags, signer }) {
      const recipients = args.slice(0, -1).map((text) => accountIn(text, "A recipient"));
      const givenAtoken = amountIn(args.at(-1) ?? "", "The amount");
      if (recipients.length === 0) throw usage("bank multi-send needs one recipient or more.");
      const count = BigInt(recipients.length);
      const eachAtoken = flags["split"] === true ? givenAtoken / count : givenAtoken;
      if (eachAtoken === 0n) throw usage("The amount is less than one atoken for each recipient.");
      const outputs = recipients.map((address) => {
        return { address: toBech32(address), coins: [coin(eachAtoken)] };
      });
      const inputs = [{ address: toBech32(signer), coins: [coin(eachAtoken * count)] }];
      return [{ name: "cosmos.bank.v1beta1.MsgMultiSend", fields: { inputs, outputs } }];
    },
  },
];
