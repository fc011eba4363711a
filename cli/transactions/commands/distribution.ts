/** `causeway tx distribution` and `tx slashing`. */
import { operatorText, toBech32 } from "../../../chain/address.js";
import type { MessageInput, TxCommand } from "../tx-command.js";
import { accountIn, amountIn, coin, flagText, integerIn, operatorIn, usage } from "../values.js";
import type { TxMessage } from "../document.js";
import type { TxNode } from "../tx-node.js";

const MODULE = "cosmos.distribution.v1beta1";

/** Withdrawals in one transaction: the most messages that one may have. */
const MAX_WITHDRAWALS = 100;

/** The commands. */
export const DISTRIBUTION_COMMANDS: readonly TxCommand[] = [
  {
    words: "distribution withdraw-rewards",
    description:
      "withdraw the rewards of a delegation, with --commission those of the validator too",
    args: ["<validator>"],
    options: [["--commission", "withdraw the validator's commission as well"]],
    messages({ args: [validator = ""], flags, signer }) {
      const operator = operatorIn(validator);
      const rewards = withdrawal(toBech32(signer), operator);
      return flags["commission"] === true ? [rewards, commission(operator)] : [rewards];
    },
  },
  {
    words: "distribution withdraw-validator-commission",
    description: "withdraw a validator's commission",
    args: ["<validator>"],
    messages: ({ args: [validator = ""] }) => [commission(operatorIn(validator))],
  },
  {
    words: "distribution withdraw-all-rewards",
    description: "withdraw the rewards of all delegations, in one transaction",
    args: [],
    options: [["--max-msgs <n>", "at most so many withdrawals; 0 for as many as may be"]],
    messages: withdrawAll,
  },
  {
    words: "distribution set-withdraw-addr",
    description: "say to which account rewards go from now on",
    args: ["<account>"],
    messages: ({ args: [account = ""], signer }) => [
      {
        name: `${MODULE}.MsgSetWithdrawAddress`,
        fields: {
          delegator_address: toBech32(signer),
          withdraw_address: toBech32(accountIn(account, "The account")),
        },
      },
    ],
  },
  {
    words: "distribution fund-community-pool",
    description: "give coins to what governance spends",
    args: ["<amount>"],
    messages: ({ args: [amount = ""], signer }) => [
      {
        name: `${MODULE}.MsgFundCommunityPool`,
        fields: {
          amount: [coin(amountIn(amount, "The amount"))],
          depositor: toBech32(signer),
        },
      },
    ],
  },
  {
    words: "slashing unjail",
    description: "bring a jailed validator back",
    args: [],
    messages: ({ signer }) => [
      {
        name: "cosmos.slashing.v1beta1.MsgUnjail",
        fields: { validator_addr: operatorText(signer) },
      },
    ],
  },
];

function withdrawal(delegator: string, operator: string): TxMessage {
  const fields = { delegator_address: delegator, validator_address: operator };
  return { name: `${MODULE}.MsgWithdrawDelegatorReward`, fields };
}

function commission(operator: string): TxMessage {
  const fields = { validator_address: operator };
  return { name: `${MODULE}.MsgWithdrawValidatorCommission`, fields };
}

async function withdrawAll(input: MessageInput): Promise<readonly TxMessage[]> {
  const { flags, signer, warn } = input;
  const most = Number(integerIn(flagText(flags, "maxMsgs") ?? "0", "--max-msgs"));
  const node = await input.node();
  const delegator = toBech32(signer);
  const path = `/${MODULE}.Query/DelegatorValidators`;
  const answer = await node.ask(path, { delegator_address: delegator });
  const all = answer.texts("validators");
  if (all.length === 0) throw usage(`${delegator} has no delegations.`);
  const bound = Math.min(most === 0 ? MAX_WITHDRAWALS : most, MAX_WITHDRAWALS);
  if (all.length <= bound) return all.map((operator) => withdrawal(delegator, operator));
  warn(
    `${all.length - bound} of ${all.length} delegations are left out: this transaction takes ${bound}. ` +
      "Those with the most rewards come first; say the same again when it is in a block.",
  );
  const rewards = await rewardsByOperator(node, delegator);
  const rewardOf = (operator: string): bigint => rewards.get(operator) ?? 0n;
  // In an order that changes with what was withdrawn, or the same ones would be taken for ever.
  const bySize = all.toSorted((a, b) => {
    const [first, second] = [rewardOf(a), rewardOf(b)];
    return first === second ? 0 : first < second ? 1 : -1;
  });
  return bySize.slice(0, bound).map((operator) => withdrawal(delegator, operator));
}

/** A delegator's rewards by validator, in 10^-18 atoken, as decimals travel in messages. */
async function rewardsByOperator(
  node: TxNode,
  delegator: string,
): Promise<ReadonlyMap<string, bigint>> {
  const path = `/${MODULE}.Query/DelegationTotalRewards`;
  const answer = await node.ask(path, { delegator_address: delegator });
  return new Map(
    answer.messages("rewards").map((one) => {
      const [coins] = one.messages("reward");
      return [one.text("validator_address"), BigInt(coins?.text("amount") ?? 0)];
    }),
  );
}
