/** The exchange APIs as a strict reader: every answer is held against the contract's shape. */
import { z } from "zod";
import { callApi, type RunningKit } from "../kit.js";

/** Rows asked for at a time; small enough that lists of these tests have several pages. */
const PAGE_ROWS = 97;

const addressText = z.string().regex(/^0x[0-9a-fA-F]{40}$/);
const hash = z.string().regex(/^0x[0-9a-f]{64}$/);
const atoken = z.string().regex(/^[1-9][0-9]{0,77}$/);
const time = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);

/** A row of `/v1/deposits`. */
export const depositSchema = z.strictObject({
  id: z.string(),
  address: addressText,
  customerId: z.string(),
  asset: z.literal("TOKEN"),
  amountUnits: atoken,
  amountAtoken: atoken,
  status: z.enum(["detected", "credited", "held", "suspense"]),
  blockNumber: z.int(),
  blockHash: hash,
  txHash: hash,
  txIndex: z.int(),
  opIndex: z.int(),
  confirmations: z.int(),
});

/** A row of `/v1/withdrawals`. */
export const withdrawalSchema = z.object({
  id: z.string(),
  customerId: z.string(),
  asset: z.literal("TOKEN"),
  to: addressText,
  amountAtoken: atoken,
  status: z.string(),
  nonce: z.int().nullable(),
  hashes: z.array(hash),
  txHash: hash.nullable(),
  blockNumber: z.int().nullable(),
  history: z.array(z.strictObject({ status: z.string(), at: time })),
});

/** A row of `/v1/events`. */
export const eventSchema = z.strictObject({
  seq: z.int(),
  epoch: z.literal(1),
  type: z.string(),
  data: z.record(z.string(), z.unknown()),
  at: time,
});

const balancesSchema = z.strictObject({
  customerId: z.string(),
  balances: z.tuple([
    z.strictObject({
      asset: z.literal("TOKEN"),
      availableUnits: z.string(),
      heldUnits: z.string(),
      pendingUnits: z.string(),
      availableAtoken: z.string(),
      heldAtoken: z.string(),
      pendingAtoken: z.string(),
    }),
  ]),
});

/** A deposit as the API shows it. */
export type ApiDeposit = z.infer<typeof depositSchema>;

/** A withdrawal as the API shows it. */
export type ApiWithdrawal = z.infer<typeof withdrawalSchema>;

/** An event as the API shows it. */
export type ApiEvent = z.infer<typeof eventSchema>;

/** States in which a withdrawal ends. */
export const FINAL_STATES: ReadonlySet<string> = new Set([
  "settled",
  "failed",
  "rejected",
  "cancelled",
]);

/** All rows of `/v1/deposits`, page by page. */
export function readDeposits(kit: RunningKit): Promise<ApiDeposit[]> {
  return readAll(kit, { api: "depositApi", list: "deposits", row: depositSchema });
}

/** All rows of `/v1/withdrawals`, page by page. */
export function readWithdrawals(kit: RunningKit): Promise<ApiWithdrawal[]> {
  return readAll(kit, { api: "withdrawalApi", list: "withdrawals", row: withdrawalSchema });
}

/** All events behind a position, page by page. */
export function readEvents(kit: RunningKit, after = 0): Promise<ApiEvent[]> {
  return readAll(kit, { api: "depositApi", list: "events", row: eventSchema, after });
}

/** Balances of a customer in the one asset there is. */
export async function readBalance(kit: RunningKit, customerId: string) {
  const path = `/v1/customers/${customerId}/balances`;
  const { status, body } = await callApi(kit, "depositApi", { path });
  if (status !== 200) throw new Error(`${path} answered ${status}: ${JSON.stringify(body)}`);
  const [balance] = balancesSchema.parse(body).balances;
  return {
    availableAtoken: BigInt(balance.availableAtoken),
    heldAtoken: BigInt(balance.heldAtoken),
    pendingAtoken: BigInt(balance.pendingAtoken),
  };
}

/** A reader of the event stream that runs until it is stopped. */
export interface EventFollower {
  /** What came so far, in order. */
  readonly seen: readonly ApiEvent[];
  /** Why no more comes before `stop` was called; undefined as long as it reads. */
  readonly fault: unknown;
  /** Reads the rest and ends. Rejects when an event was missing in between. */
  stop(): Promise<readonly ApiEvent[]>;
}

/** Follows the event stream while it grows and checks that it never has a gap. */
export function followEvents(kit: RunningKit): EventFollower {
  const seen: ApiEvent[] = [];
  let isStopping = false;
  const loop = async () => {
    for (;;) {
      const isLast = isStopping;
      for (const event of await readEvents(kit, seen.length)) {
        seen.push(event);
        if (event.seq !== seen.length) {
          throw new Error(`event ${event.seq} came where ${seen.length} was due`);
        }
      }
      if (isLast) return seen;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  let fault: unknown;
  const running = loop();
  // A fault is thrown by `stop`, and by whoever waits for events; until then nobody waits for it.
  running.catch((error: unknown) => {
    fault = error;
  });
  return {
    seen,
    get fault() {
      return fault;
    },
    stop() {
      isStopping = true;
      return running;
    },
  };
}

async function readAll<T>(
  kit: RunningKit,
  what: {
    readonly api: "depositApi" | "withdrawalApi";
    readonly list: string;
    readonly row: z.ZodType<T>;
    readonly after?: number;
  },
): Promise<T[]> {
  const schema = z.strictObject({
    [what.list]: z.array(what.row),
    next: z.string().nullable(),
  });
  const rows: T[] = [];
  let after: string | null = what.after === undefined ? null : String(what.after);
  do {
    const from = after === null ? "" : `&after=${after}`;
    const path = `/v1/${what.list}?limit=${PAGE_ROWS}${from}`;
    const { status, body } = await callApi(kit, what.api, { path });
    if (status !== 200) throw new Error(`${path} answered ${status}: ${JSON.stringify(body)}`);
    const page = schema.parse(body);
    rows.push(...z.array(what.row).parse(page[what.list]));
    after = z.string().nullable().parse(page["next"]);
  } while (after !== null);
  return rows;
}
