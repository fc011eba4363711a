/** Transactions that the pool took and no block can hold: they go, and nobody is called for them. */
import { afterEach, expect, it } from "@jest/globals";
import { Interface, Wallet } from "ethers";
import { parseAddress, toBech32, VALIDATOR_PREFIX } from "../../../chain/address.js";
import { parseHash32, parseHexBytes } from "../../../chain/hex.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { ValidatorNetwork } from "../../helpers/chains/validator-network.js";
import { operatorAt, validatorGenesis } from "../../helpers/chains/validator-node.js";
import { until } from "../../helpers/until.js";

const faucet = Wallet.createRandom();
const from = parseAddress(faucet.address);
const TOKEN = 10n ** 18n;
const STAKING = "0x0000000000000000000000000000000000000800";
const abi = new Interface(["function delegate(address, string, uint256) returns (bool)"]);

let net: ValidatorNetwork | undefined;

afterEach(() => net?.close());

function sign(nonce: number, tx: { to: string; data?: string; value?: bigint }) {
  const fixed = { type: 0, chainId: 6940, gasPrice: 25_000_000n, gasLimit: 900_000n };
  return faucet.signTransaction({ ...fixed, nonce, ...tx });
}

it("drops what a call before it left no coins for, without an alarm", async () => {
  const { genesis, seeds } = validatorGenesis(1, { faucet: faucet.address, params: {} });
  net = new ValidatorNetwork(genesis, seeds);
  const lines: { readonly level: string; readonly msg: string }[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const log = createLogger({ component: "test", level: "info", destination });
  const node = await net.start(0, { log });
  await net.reach(1);
  const balanceAtoken = node.stores.state.account(from)?.balanceAtoken ?? 0n;
  // The pool knows what a transaction may cost and carry, not what it makes the chain's contracts take.
  const operator = toBech32(operatorAt(0), VALIDATOR_PREFIX);
  const staked = [faucet.address, operator, balanceAtoken - TOKEN];
  const signed = [
    await sign(0, { to: STAKING, data: abi.encodeFunctionData("delegate", staked) }),
    await sign(1, { to: `0x${"77".repeat(20)}`, value: 2n * TOKEN }),
  ];
  const answers = await node.pool.submit(signed.map(parseHexBytes));
  expect(answers.filter((answer) => answer instanceof Error)).toEqual([]);
  const [, unpaid] = answers.map((answer) => parseHash32(String(answer)));
  if (unpaid === undefined) throw new Error("nothing was taken");
  await until(() => node.pool.status(unpaid).status === "dropped", { timeoutMs: 30_000 });
  expect(node.pool.status(unpaid)).toEqual({
    status: "dropped",
    reason: expect.stringMatching(/^insufficient funds/),
  });
  await until(() => node.stores.state.account(from)?.nonce === 1n, { timeoutMs: 30_000 });
  expect(lines.filter(({ level }) => level === "error" || level === "warn")).toEqual([]);
});
