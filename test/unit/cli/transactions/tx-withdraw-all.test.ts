/** `tx distribution withdraw-all-rewards` with more delegations than one transaction takes. */
import { describe, expect, it } from "@jest/globals";
import { parseAddress, toBech32, VALIDATOR_PREFIX } from "../../../../chain/address.js";
import { MessageReader } from "../../../../chain/protobuf/values.js";
import { DISTRIBUTION_COMMANDS } from "../../../../cli/transactions/commands/distribution.js";
import { TxNode } from "../../../../cli/transactions/tx-node.js";
import { loadDescriptors } from "../../../../runtime/files/descriptor-set.js";

const signer = parseAddress(`0x${"11".repeat(20)}`);
const operators = Array.from({ length: 103 }, (_, index) =>
  toBech32(parseAddress(`0x${(index + 1).toString(16).padStart(40, "0")}`), VALIDATOR_PREFIX),
);

/** A node whose delegator has the first `count` delegations; the last one has the most rewards. */
class DelegatedNode extends TxNode {
  constructor(private readonly count: number) {
    super(loadDescriptors(), { url: "http://127.0.0.1:1", height: 0, signal: AbortSignal.abort() });
  }

  override ask(path: string): Promise<MessageReader> {
    const validators = operators.slice(0, this.count);
    const rewards = validators.map((operator, index) => ({
      validator_address: operator,
      reward: index === 0 ? [] : [{ denom: "atoken", amount: `${index}${"0".repeat(18)}` }],
    }));
    const answers = new Map([
      ["/cosmos.distribution.v1beta1.Query/DelegatorValidators", { validators }],
      ["/cosmos.distribution.v1beta1.Query/DelegationTotalRewards", { rewards }],
    ]);
    return Promise.resolve(new MessageReader(answers.get(path) ?? {}));
  }
}

async function withdrawn(count: number, flags: Readonly<Record<string, string>> = {}) {
  const command = DISTRIBUTION_COMMANDS.find(({ words }) => words.includes("withdraw-all-rewards"));
  const warned: string[] = [];
  const messages = await command?.messages({
    args: [],
    flags,
    signer,
    home: "/nowhere",
    node: async () => new DelegatedNode(count),
    warn: (line) => void warned.push(line),
  });
  return { operators: messages?.map(({ fields }) => fields["validator_address"]), warned };
}

describe("the rewards of all delegations", () => {
  it("are withdrawn in one transaction, and nothing more is said", async () => {
    expect(await withdrawn(100)).toEqual({ operators: operators.slice(0, 100), warned: [] });
  });

  it("are withdrawn by size where they are more, and the rest is told", async () => {
    const { operators: first, warned } = await withdrawn(103);
    expect(first).toEqual(operators.slice(3).toReversed());
    expect(warned).toEqual([
      "3 of 103 delegations are left out: this transaction takes 100. Those with the most rewards " +
        "come first; say the same again when it is in a block.",
    ]);
  });

  it("are withdrawn as far as --max-msgs allows", async () => {
    const { operators: first, warned } = await withdrawn(3, { maxMsgs: "2" });
    expect(first).toEqual([operators[2], operators[1]]);
    expect(warned).toEqual([expect.stringContaining("1 of 3 delegations are left out")]);
  });
});
