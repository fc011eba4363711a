/** Tokens that tell the truth and tokens that lie, and what happens to them, as seeded acts. */
import { getCreateAddress, Interface, MaxUint256 } from "ethers";
import { type ChainRequest, type ExchangeChain, Sender } from "../helpers/exchange/chain.js";
import type { CompiledContract } from "../helpers/contracts/solidity.js";
import {
  type Act,
  callRequest,
  compileContracts,
  deployRequest,
  fundWallets,
  namedWallet,
  playActs,
  type Stage,
  TOKEN,
  type TrafficReport,
} from "./traffic.js";

/** A token of the traffic. */
export interface TrafficToken {
  readonly symbol: string;
  readonly contract: string;
  /** Whether its logs add up to `balanceOf`. */
  readonly isHonest: boolean;
  readonly address: string;
}

/** The account that creates the tokens: known before the chain, so their addresses are too. */
const DEPLOYER = namedWallet("deployer");

/** Creates one token after the rounds: its entry is older than its contract by far. */
const LATE_DEPLOYER = namedWallet("late deployer");

const KINDS: readonly (readonly [symbol: string, contract: string, isHonest: boolean])[] = [
  ["HON", "HonestToken", true],
  ["HFEE", "HonestFeeToken", true],
  ["WTOK", "WrappedToken", true],
  ["FOTT", "FeeOnTransferToken", false],
  ["REBT", "RebasingToken", false],
  ["LIET", "LyingToken", false],
  ["SILT", "SilentToken", false],
];

const EARLY_TOKENS: readonly TrafficToken[] = KINDS.map(([symbol, contract, isHonest], nonce) => ({
  symbol,
  contract,
  isHonest,
  address: getCreateAddress({ from: DEPLOYER.address, nonce }),
}));

const LATE_TOKEN: TrafficToken = {
  symbol: "EARL",
  contract: "HonestToken",
  isHonest: true,
  address: getCreateAddress({ from: LATE_DEPLOYER.address, nonce: 0 }),
};

/** All tokens of the traffic. */
export const TRAFFIC_TOKENS: readonly TrafficToken[] = [...EARLY_TOKENS, LATE_TOKEN];

/** What the kit's tokens.json says; the last entry's contract is never created. */
export const TRAFFIC_REGISTRY = [
  ...TRAFFIC_TOKENS.map(({ symbol, address }) => ({
    contractAddress: address,
    symbol,
    decimals: 18,
  })),
  {
    contractAddress: getCreateAddress({ from: DEPLOYER.address, nonce: 1_000_000 }),
    symbol: "NEVR",
    decimals: 6,
  },
];

/** Who pays in the workflows of erc20.ros; the file has the same address. */
export const TOKEN_WORKFLOW_WALLET = namedWallet("token workflows");

/** The tokens on the chain, and who holds them. */
export class TokenTraffic {
  readonly #compiled: Record<string, CompiledContract>;
  readonly #deployer: Sender;

  private constructor(
    private readonly stage: Stage,
    private readonly report: TrafficReport,
  ) {
    this.#compiled = compileContracts("Tokens.sol");
    this.#deployer = new Sender(DEPLOYER, stage.chain);
  }

  /** Creates all tokens but the last, and hands out what the rounds need. */
  static async open(stage: Stage, report: TrafficReport): Promise<TokenTraffic> {
    const tokens = new TokenTraffic(stage, report);
    await fundWallets(stage, [DEPLOYER, LATE_DEPLOYER, TOKEN_WORKFLOW_WALLET], 100n * TOKEN);
    await tokens.#deploy(tokens.#deployer, EARLY_TOKENS);
    await tokens.#handOut();
    return tokens;
  }

  /** One round: each kind once. */
  round(): Act[] {
    const { senders, random } = this.stage;
    const units = () => 100n + BigInt(random.integer(2 ** 31));
    const any = () => random.pick(senders);
    const to = () => any().wallet.address;
    const self = any();
    const [spender] = senders;
    if (spender === undefined) throw new Error("no sender");
    const hon = (kind: string, from: Sender, name: string, args: readonly unknown[]): Act => ({
      kind: `HON ${kind}`,
      from,
      request: this.call("HON", name, args),
    });
    const failing = hon("failing transfer", any(), "transfer", [to(), 10n ** 60n]);
    return [
      { ...hon("mint", any(), "mint", [to(), units()]), proof: logs(1) },
      { ...hon("burn", any(), "burn", [units()]), proof: logs(1) },
      { ...hon("transfer", any(), "transfer", [to(), units()]), proof: logs(1) },
      { ...hon("transferFrom", spender, "transferFrom", [to(), to(), units()]), proof: logs(1) },
      { ...hon("self-transfer", self, "transfer", [self.wallet.address, units()]), proof: logs(1) },
      { ...hon("transfer of zero", any(), "transfer", [to(), 0n]), proof: logs(1) },
      { ...hon("undone transfer", any(), "transferAndUndo", [to(), units()]), proof: logs(0) },
      { ...failing, fails: true, proof: logs(0) },
      this.transfer("HFEE", any(), { to: to(), units: units(), logCount: 2 }),
      this.transfer("WTOK", any(), { to: to(), units: units(), logCount: 1 }),
      this.wrap("deposit", "deposit", [], units()),
      this.wrap("withdraw", "withdraw", [units()]),
      {
        kind: "WTOK plain payment",
        from: any(),
        request: { to: addressOf("WTOK"), valueAtoken: units(), gasLimit: 100_000n },
        proof: logs(1),
      },
      ...["FOTT", "REBT", "LIET", "SILT"].map((symbol) =>
        this.transfer(symbol, this.#deployer, { to: to(), units: units(), logCount: 1 }),
      ),
    ];
  }

  /** What happens once, behind the rounds: the late token, and a growth without any log. */
  async finish(): Promise<void> {
    const rebase: Act = {
      kind: "REBT rebase without log",
      from: this.#deployer,
      request: this.call("REBT", "rebase"),
      proof: logs(0),
    };
    await this.#deploy(new Sender(LATE_DEPLOYER, this.stage.chain), [LATE_TOKEN]);
    const mint = this.call("EARL", "mint", [this.#deployer.wallet.address, TOKEN]);
    const acts: Act[] = [
      rebase,
      { kind: "EARL mint", from: this.#deployer, request: mint, proof: logs(1) },
    ];
    await playActs(this.stage, acts, this.report);
  }

  private transfer(
    symbol: string,
    from: Sender,
    move: { readonly to: string; readonly units: bigint; readonly logCount: number },
  ): Act {
    const request = this.call(symbol, "transfer", [move.to, move.units]);
    return { kind: `${symbol} transfer`, from, request, proof: logs(move.logCount) };
  }

  private wrap(kind: string, name: string, args: readonly unknown[], valueAtoken = 0n): Act {
    const from = this.stage.random.pick(this.stage.senders);
    const request = this.call("WTOK", name, args, valueAtoken);
    return { kind: `WTOK ${kind}`, from, request, proof: logs(1) };
  }

  private call(
    symbol: string,
    name: string,
    args: readonly unknown[] = [],
    valueAtoken = 0n,
  ): ChainRequest {
    const token = TRAFFIC_TOKENS.find((one) => one.symbol === symbol);
    const contract = this.#compiled[token?.contract ?? ""];
    return callRequest(contract, addressOf(symbol), { name, args, valueAtoken });
  }

  async #deploy(from: Sender, tokens: readonly TrafficToken[]): Promise<void> {
    const acts = tokens.map(
      ({ symbol, contract }): Act => ({
        kind: `${symbol} creation`,
        from,
        request: deployRequest(this.#compiled[contract]),
      }),
    );
    await playActs(this.stage, acts, this.report);
  }

  /** Balances for all senders, an allowance of each for the first, and the workflows' capital. */
  async #handOut(): Promise<void> {
    const { senders } = this.stage;
    const first = senders[0]?.wallet.address;
    const each = 10n ** 15n;
    const acts = senders.flatMap((sender): Act[] => {
      const to = sender.wallet.address;
      const by = (from: Sender, kind: string, request: ChainRequest) => ({ kind, from, request });
      return [
        by(sender, "HON mint", this.call("HON", "mint", [to, each])),
        by(sender, "HON approve", this.call("HON", "approve", [first, MaxUint256])),
        by(sender, "WTOK deposit", this.call("WTOK", "deposit", [], each)),
        by(this.#deployer, "HFEE transfer", this.call("HFEE", "transfer", [to, each])),
      ];
    });
    const request = this.call("HON", "mint", [TOKEN_WORKFLOW_WALLET.address, TOKEN]);
    acts.push({ kind: "HON mint", from: this.#deployer, request });
    await playActs(this.stage, acts, this.report);
  }
}

/** The currency of a token as the sidecar writes it. */
export function currencyOf(symbol: string): object {
  return { symbol, decimals: 18, metadata: { contractAddress: addressOf(symbol) } };
}

/** A Deposit has no `from`, a Withdrawal no `to`. */
interface EventParties {
  readonly from?: string;
  readonly to?: string;
}

const EVENTS = new Interface([
  "event Transfer(address indexed from, address indexed to, uint256 value)",
  "event Deposit(address indexed to, uint256 value)",
  "event Withdrawal(address indexed from, uint256 value)",
  "function balanceOf(address who) view returns (uint256)",
]);

/** Whether what a token logged adds up to what it says everybody has, asked of the node. */
export async function isExplained(chain: ExchangeChain, token: TrafficToken): Promise<boolean> {
  const filter = { address: token.address, fromBlock: "0x0", toBlock: "latest" };
  const entries: readonly { topics: string[]; data: string }[] = await chain.provider.send(
    "eth_getLogs",
    [filter],
  );
  const sums = new Map<string, bigint>([[DEPLOYER.address, 0n]]);
  const add = (who: string | undefined, units: bigint) => {
    if (who !== undefined) sums.set(who, (sums.get(who) ?? 0n) + units);
  };
  for (const entry of entries) {
    const log = EVENTS.parseLog(entry);
    if (log === null) continue;
    const { from, to }: EventParties = log.args.toObject();
    const units = BigInt(log.args["value"]);
    add(from, -units);
    add(to, units);
  }
  sums.delete(`0x${"0".repeat(40)}`);
  const balances = await Promise.all(
    [...sums.keys()].map(async (who) => {
      const data = EVENTS.encodeFunctionData("balanceOf", [who]);
      const call = { to: token.address, data };
      return BigInt(await chain.provider.send("eth_call", [call, "latest"]));
    }),
  );
  return [...sums.values()].every((sum, position) => sum === balances[position]);
}

function addressOf(symbol: string): string {
  const token = TRAFFIC_TOKENS.find((one) => one.symbol === symbol);
  if (token === undefined) throw new Error(`no token ${symbol}`);
  return token.address;
}

/** The receipt carries so many logs. */
function logs(count: number): Act["proof"] {
  return (receipt) => receipt.logs.length === count;
}
