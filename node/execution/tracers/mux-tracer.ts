/** geth's muxTracer and noopTracer: several tracers over one execution, or none. */
import type { Watcher } from "../interpreter/watcher.js";
import type { TracedMessage, Tracer, TraceSummary } from "./tracer.js";

/** Answers nothing, `{}`. */
export const NOOP_TRACER: Tracer = {
  watcher: {},
  start() {
    // Nothing is recorded.
  },
  finish: () => ({}),
};

/** Several tracers by their names. */
export class MuxTracer implements Tracer {
  readonly watcher: Watcher;

  constructor(private readonly tracers: readonly (readonly [name: string, tracer: Tracer])[]) {
    this.watcher = allOf(tracers.map(([, { watcher }]) => watcher));
  }

  start(message: TracedMessage): void {
    for (const [, tracer] of this.tracers) tracer.start(message);
  }

  finish(summary: TraceSummary): unknown {
    const sorted = this.tracers.toSorted(([left], [right]) => (left < right ? -1 : 1));
    return Object.fromEntries(sorted.map(([name, tracer]) => [name, tracer.finish(summary)]));
  }
}

/** One watcher that tells all. */
function allOf(watchers: readonly Watcher[]): Watcher {
  const steppers = watchers.flatMap(({ steps }) => (steps === undefined ? [] : [steps]));
  return {
    enter: (message, address) => {
      for (const watcher of watchers) watcher.enter?.(message, address);
    },
    leave: (message, end) => {
      for (const watcher of watchers) watcher.leave?.(message, end);
    },
    log: (log) => {
      for (const watcher of watchers) watcher.log?.(log);
    },
    selfdestruct: (self, heir, balanceAtoken) => {
      for (const watcher of watchers) watcher.selfdestruct?.(self, heir, balanceAtoken);
    },
    ...(steppers.length === 0
      ? {}
      : {
          steps: {
            before: (step) => {
              for (const stepper of steppers) stepper.before(step);
            },
            after: (step, end) => {
              for (const stepper of steppers) stepper.after?.(step, end);
            },
          },
        }),
  };
}
