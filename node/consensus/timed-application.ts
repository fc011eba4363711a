/** The application of consensus, with a watch on how long each call takes. */
import type { Clock } from "../../runtime/process/clock.js";
import type { BlockApplication } from "../blocks/block-application.js";
import type { ConsensusReport } from "./consensus-ports.js";

type Timing = Extract<ConsensusReport, { readonly type: "timing" }>;

/** The same application; each call that ends well is told of. */
export function timedApplication(
  application: BlockApplication,
  clock: Clock,
  onTiming: (timing: Timing) => void,
): BlockApplication {
  const timed = async <T>(method: Timing["method"], work: () => Promise<T>): Promise<T> => {
    const startMs = clock.monotonicMs();
    const result = await work();
    onTiming({ type: "timing", method, durationMs: clock.monotonicMs() - startMs });
    return result;
  };
  return {
    appVersion: () => application.appVersion(),
    assertMayGoOn: () => application.assertMayGoOn(),
    build: (place, room) => timed("prepare_proposal", () => application.build(place, room)),
    execute: (place, transactions) =>
      timed("process_proposal", () => application.execute(place, transactions)),
    isPunishable: (address) => application.isPunishable(address),
    settle: (tip, decision, records) =>
      timed("commit", () => application.settle(tip, decision, records)),
  };
}
