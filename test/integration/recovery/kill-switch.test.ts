/** A kill switch that outlives a recovery. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { readKillSwitch } from "../../../ledger/kill-switch/kill-switch.js";
import { readKillSwitchFile } from "../../../ledger/kill-switch/kill-switch-file.js";
import { killSwitchPath } from "../../../ledger/policy/policy-paths.js";
import { readFreeze } from "../../../ledger/requests/signing-freeze.js";
import { standing } from "../../helpers/services/ledger.js";
import { until } from "../../helpers/until.js";
import { type CommandResult, Desk, destination, TOKEN, WALLET } from "./desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

const FIELDS = { customer: "alice", to: destination(1), amountAtoken: TOKEN };

/** Resolves once so many sessions of the ledger wait for a lock. */
const waits = (count: number) =>
  until(
    async () => {
      const rows = await desk.database.query(
        `SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid)
          WHERE NOT granted AND datname = current_database()`,
      );
      return rows.length >= count;
    },
    { timeoutMs: 20_000, what: `${count} commands wait` },
  );

/** Key of the advisory lock that changes of the switch wait for, once `standStill` has said so. */
const STAND = 4_711;

/** Changes of the switch stand still where they are written, for as long as they must: not five seconds. */
async function standStill(): Promise<void> {
  await desk.database.query(
    `CREATE FUNCTION stand_still() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0 AS $$
     BEGIN
       PERFORM pg_advisory_xact_lock(${STAND});
       RETURN NEW;
     END $$`,
  );
  await desk.database.query(
    `CREATE TRIGGER stands_still BEFORE INSERT ON kill_switch
       FOR EACH ROW EXECUTE FUNCTION stand_still()`,
  );
}

describe("the kill switch", () => {
  it.each([
    { words: ["lift"], what: "lifts it" },
    { words: ["set", "stop-new"], what: "lowers it" },
  ])("that somebody sets while another $what stays set in ledger and home", async ({ words }) => {
    const why = ["--reason", "a drill", "--operator", "bea"];
    await desk.causeway("killswitch", "set", "stop-sign", ...why);
    const commands: Promise<CommandResult>[] = [];
    await standStill();
    await standing(desk.database, async (tx) => {
      // Whoever changes the switch first waits here with it in its hands, and the other one behind that.
      await tx.query(`SELECT pg_advisory_xact_lock(${STAND})`);
      commands.push(desk.causeway("killswitch", ...words, ...why));
      await waits(1);
      commands.push(desk.causeway("killswitch", "set", "stop-broadcast", ...why));
      await waits(2);
    });
    const [lowered, set] = await Promise.all(commands);
    expect([lowered?.code, set?.code]).toEqual([1, 0]);
    expect(lowered?.text).toContain("set again meanwhile: stop-broadcast");
    expect((await readKillSwitch(desk.database)).level).toBe("stop-broadcast");
    expect(readKillSwitchFile(killSwitchPath(desk.home)).level).toBe("stop-broadcast");
    expect((await desk.causeway("killswitch", "lift", ...why)).code).toBe(0);
    expect((await desk.causeway("killswitch", "show")).code).toBe(0);
  });

  it("stays as a person left it when a ledger is recovered", async () => {
    const backup = await desk.backup();
    await desk.request({ key: "a", ...FIELDS });
    await desk.work();
    rmSync(join(desk.home, "data"), { recursive: true, force: true });
    await desk.useDatabase(backup);
    await desk.lane().runRound(desk.signal);
    expect((await readFreeze(desk.database, WALLET)).reason).toContain("the chain knows nonces");
    await desk.causeway("withdrawals", "freeze", "--reason", "the key may be stolen");
    await desk.watch();
    await desk.causeway("recover", "--declare", "restored", "--apply", "--operator", "bea");
    expect((await readFreeze(desk.database, WALLET)).frozen).toBe(true);
  });

  it("keeps what a chain has lost from being sent again, until it is lifted", async () => {
    const kept = desk.chain.head;
    const { id } = await desk.request({ key: "a", ...FIELDS });
    await desk.work();
    await desk.watch();
    expect((await desk.read(id)).status).toBe("settled");
    await desk.loseAbove(kept);
    const why = ["--reason", "the key may be stolen", "--operator", "bea"];
    await desk.causeway("killswitch", "set", "stop-broadcast", ...why);
    const stopped = await desk.causeway("recover", "--apply");
    expect([stopped.code, stopped.text]).toEqual([1, expect.stringContaining("NOT SENT")]);
    desk.chain.mine();
    await desk.watch();
    expect(desk.paidAtoken(destination(1))).toBe(0n);
    await desk.causeway("killswitch", "lift", ...why);
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);
    desk.chain.mine();
    await desk.watch();
    expect(desk.paidAtoken(destination(1))).toBe(TOKEN);
    expect(await desk.breaks()).toBe("");
  });
});
