/** The operator of an exchange in the soak: commands of the runbook, and what they wait for. */
import { pause } from "../helpers/faults/bench.js";
import type { LabExchange } from "../helpers/faults/lab/lab-exchange.js";
import { until } from "../helpers/until.js";

/** What the operator gives as the reason of a decision. */
export const REASON = "the client's own records";

const RETRY_MS = 500;

/** Time of a step that waits for processes or blocks on a busy machine. */
const STEP_TIMEOUT_MS = 60_000;

/**
 * What the operator types, again while there is no node: others on this chain kill it.
 * @returns what it came to
 */
export async function command(lab: LabExchange, ...words: readonly string[]) {
  for (;;) {
    const result = await lab.command(...words);
    if (!result.stderr.includes("no connection to ")) return result;
    await pause(RETRY_MS);
  }
}

/** The same of a command that must not fail. */
export async function must(lab: LabExchange, ...words: readonly string[]): Promise<void> {
  const { code, stdout, stderr } = await command(lab, ...words);
  if (code !== 0) throw new Error(`causeway ${words.join(" ")}: ${code} ${stdout}${stderr}`);
}

/** The same of a command that is typed until it says that nothing is left. */
export async function mustAtLast(lab: LabExchange, ...words: readonly string[]): Promise<void> {
  let said = "";
  const isDone = async () => {
    const { code, stdout, stderr } = await command(lab, ...words);
    said = `${code} ${stdout}${stderr}`;
    return code === 0;
  };
  const what = `causeway ${words.join(" ")} is done`;
  await until(isDone, { timeoutMs: STEP_TIMEOUT_MS, what }).catch((error: unknown) => {
    throw new Error(`${String(error)}: ${said}`);
  });
}

/** Every process says that it does not do its work. */
export async function untilClosed(lab: LabExchange): Promise<void> {
  let states: string[] = [];
  const isClosed = async () => {
    states = await Promise.all(lab.served.map((member) => lab.readiness(member)));
    return states.every((state) => state.startsWith("503"));
  };
  const what = "the exchange is closed";
  await until(isClosed, { timeoutMs: STEP_TIMEOUT_MS, what }).catch((error: unknown) => {
    throw new Error(`${String(error)}: ${states.join("; ")}`);
  });
}

/** The watcher has booked what is mined now. */
export async function untilCaughtUp(lab: LabExchange): Promise<void> {
  const head = (await lab.customers.chain.height()) + 2;
  const isPassed = async () => {
    const [row] = await lab.query<{ height: string }>(`SELECT height FROM watch_cursor`);
    return Number(row?.height ?? -1) >= head;
  };
  await until(isPassed, { timeoutMs: STEP_TIMEOUT_MS, what: "the watcher has caught up" });
}
