/** The withdrawals of the exchange test: what is asked for, how, and what may become of it. */
import { getAddress, hexlify } from "ethers";
import type { Target } from "./deposits.js";
import { type ApiAnswer, callApi, type RunningKit } from "../kit.js";
import type { Random } from "../random.js";

/** What a client asks for. */
export interface WithdrawalBody {
  readonly customerId: string;
  readonly asset: "TOKEN";
  /** As written: lower case or with checksum. */
  readonly to: string;
  readonly amountAtoken: string;
}

/** One request and what may become of it. */
export interface Intent {
  readonly kind: string;
  readonly key: string;
  readonly body: WithdrawalBody;
  /**
   * `paid`; `refused` fails without using a nonce; `once` is paid for exactly one of those with the
   * same destination and fails for the others.
   */
  readonly end: "paid" | "refused" | "once";
}

/** An accepted request. */
export interface AcceptedIntent extends Intent {
  readonly id: string;
}

/** Contracts that withdrawals are paid to. */
export interface Destinations {
  readonly bookkeepers: readonly string[];
  readonly refusers: readonly string[];
  readonly burner: string;
  readonly once: readonly string[];
  readonly relays: readonly string[];
  readonly boomerang: string;
}

/** What the plan is made of. */
export interface WithdrawalParts {
  readonly random: Random;
  /** Who can withdraw, with balances that are theirs now. */
  readonly customers: readonly { readonly customerId: string; readonly availableAtoken: bigint }[];
  readonly targets: readonly Target[];
  readonly destinations: Destinations;
}

/** A new address that nobody has used; every second one is written with its checksum. */
export function freshAddress(random: Random): string {
  const address = hexlify(random.bytes(20));
  return random.integer(2) === 0 ? address : getAddress(address);
}

/** Requests that are all accepted: customers have more than enough for their share. */
export function planWithdrawals(parts: WithdrawalParts): Intent[] {
  const { random, customers, targets, destinations } = parts;
  const intents: Intent[] = [];
  const add = (count: number, kind: string, to: () => string, end: Intent["end"] = "paid") => {
    for (let n = 0; n < count; n += 1) {
      const { customerId, availableAtoken } = customers[intents.length % customers.length] ?? {
        customerId: "",
        availableAtoken: 0n,
      };
      // At most 8 % of the balance each; nobody gets more than nine of these and three twins.
      const share = (availableAtoken * BigInt(20 + random.integer(60))) / 1_000n;
      const amountAtoken = (kind === "one atoken" ? 1n : share).toString();
      const body = { customerId, asset: "TOKEN" as const, to: to(), amountAtoken };
      intents.push({ kind, key: `${kind} ${n}`, body, end });
    }
  };
  add(57, "plain", () => freshAddress(random));
  add(2, "one atoken", () => freshAddress(random));
  add(25, "needs gas", () => random.pick(destinations.bookkeepers));
  add(12, "refused", () => random.pick(destinations.refusers), "refused");
  // Several, because estimates of these are slow: they must not hold up anybody else's payment.
  add(4, "burns all gas", () => destinations.burner, "refused");
  add(16, "own deposit address", () => random.pick(targets).address);
  add(6, "relayed to a deposit address", () => random.pick(destinations.relays));
  add(3, "half comes back", () => destinations.boomerang);
  for (const contract of destinations.once) add(3, `once ${contract}`, () => contract, "once");
  const [twin] = intents;
  if (twin === undefined) throw new Error("no withdrawals");
  // The same payment four times over: four keys are four payments.
  const twins = [1, 2, 3].map((n) => ({ ...twin, key: `${twin.key} again ${n}`, kind: "twin" }));
  return [...intents, ...twins];
}

/** Sends a request as a client does. */
export function requestWithdrawal(
  kit: RunningKit,
  intent: Pick<Intent, "key"> & { readonly body: unknown },
): Promise<ApiAnswer> {
  return callApi(kit, "withdrawalApi", {
    path: "/v1/withdrawals",
    body: intent.body,
    headers: { "Idempotency-Key": intent.key },
  });
}

/** Sends requests that must all be accepted, all at once. */
export async function acceptAll(
  kit: RunningKit,
  intents: readonly Intent[],
): Promise<AcceptedIntent[]> {
  const answers = await Promise.all(intents.map((intent) => requestWithdrawal(kit, intent)));
  return intents.map((intent, index) => {
    const { status, body } = answers[index] ?? { status: 0, body: {} };
    if (status !== 201) {
      throw new Error(`${intent.key} was answered ${status} ${JSON.stringify(body)}`);
    }
    return { ...intent, id: String(body["id"]) };
  });
}

/** Outcome of many requests for one balance. */
export interface RaceResult {
  readonly customerId: string;
  readonly balanceAtoken: bigint;
  readonly accepted: readonly AcceptedIntent[];
  /** Amounts of the refused ones, with the answers. */
  readonly refused: readonly { readonly amountAtoken: bigint; readonly answer: ApiAnswer }[];
}

/** Sends more requests than a balance can bear, all at once. */
export async function raceForBalance(
  kit: RunningKit,
  race: {
    readonly random: Random;
    readonly customerId: string;
    readonly balanceAtoken: bigint;
    readonly amounts: readonly bigint[];
  },
): Promise<RaceResult> {
  const { random, customerId, balanceAtoken, amounts } = race;
  const intents = amounts.map((amountAtoken, n): Intent => {
    const to = freshAddress(random);
    const body = { customerId, asset: "TOKEN" as const, to, amountAtoken: String(amountAtoken) };
    return { kind: "race", key: `race ${customerId} ${n}`, body, end: "paid" };
  });
  const answers = await Promise.all(intents.map((intent) => requestWithdrawal(kit, intent)));
  const accepted: AcceptedIntent[] = [];
  const refused: { amountAtoken: bigint; answer: ApiAnswer }[] = [];
  intents.forEach((intent, index) => {
    const answer = answers[index] ?? { status: 0, body: {} };
    if (answer.status === 201) accepted.push({ ...intent, id: String(answer.body["id"]) });
    else refused.push({ amountAtoken: BigInt(intent.body.amountAtoken), answer });
  });
  return { customerId, balanceAtoken, accepted, refused };
}

/** Answers to one key that was sent many times at once. */
export interface RepeatResult {
  /** The request as it was accepted. */
  readonly accepted: AcceptedIntent;
  readonly answers: readonly { readonly body: WithdrawalBody; readonly answer: ApiAnswer }[];
}

/** Sends each request many times at once, every second time in another spelling. */
export function repeatKeys(
  kit: RunningKit,
  intents: readonly Intent[],
  times: number,
): Promise<RepeatResult[]> {
  return sendVariants(kit, intents, (body) =>
    Array.from({ length: times }, (_, n) => {
      const lower = body.to.toLowerCase();
      return { ...body, to: n % 2 === 0 ? lower : getAddress(lower) };
    }),
  );
}

/** Sends each key many times at once, with two amounts in turn: only one of them may win. */
export function raceBodies(
  kit: RunningKit,
  intents: readonly Intent[],
  times: number,
): Promise<RepeatResult[]> {
  return sendVariants(kit, intents, (body) =>
    Array.from({ length: times }, (_, n) =>
      n % 2 === 0 ? body : { ...body, amountAtoken: `${body.amountAtoken}0` },
    ),
  );
}

async function sendVariants(
  kit: RunningKit,
  intents: readonly Intent[],
  variantsOf: (body: WithdrawalBody) => readonly WithdrawalBody[],
): Promise<RepeatResult[]> {
  const all = intents.map(async (intent) => {
    const answers = await Promise.all(
      variantsOf(intent.body).map(async (body) => ({
        body,
        answer: await requestWithdrawal(kit, { key: intent.key, body }),
      })),
    );
    const first = answers.find(({ answer }) => answer.status === 201);
    if (first === undefined) throw new Error(`${intent.key}: ${JSON.stringify(answers)}`);
    const accepted = { ...intent, body: first.body, id: String(first.answer.body["id"]) };
    return { accepted, answers };
  });
  return Promise.all(all);
}
