/**
 * Loaded before a process of the kit: each SIGUSR2 moves its wall clock to the next step of
 * CAUSEWAY_TEST_CLOCK_STEPS (milliseconds off the true time), as a wrong time server does. Timers and
 * the monotonic clock are left alone, as they are by one.
 */
const steps = (process.env.CAUSEWAY_TEST_CLOCK_STEPS ?? "").split(",").map(Number);
const TrueDate = Date;
const trueNow = Date.now.bind(Date);
let offMs = 0;

const now = () => trueNow() + offMs;

globalThis.Date = new Proxy(TrueDate, {
  construct(target, values, newTarget) {
    return Reflect.construct(target, values.length === 0 ? [now()] : values, newTarget);
  },
  apply() {
    return new TrueDate(now()).toString();
  },
  get(target, name, receiver) {
    return name === "now" ? now : Reflect.get(target, name, receiver);
  },
});

process.on("SIGUSR2", () => {
  offMs = steps.shift() ?? 0;
  process.stderr.write(`clock off by ${offMs} ms\n`);
});
