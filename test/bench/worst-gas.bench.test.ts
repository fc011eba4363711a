import { it } from "@jest/globals";
import { measureWorstGas } from "./worst-gas.js";
it("measures", async () => {
  const only = process.env.ONLY ? new RegExp(process.env.ONLY) : undefined;
  const res = await measureWorstGas(BigInt(process.env.GAS ?? "3000000"), only);
  process.stdout.write(
    res
      .map(
        (r) =>
          `${r.mgasPerSecond.toFixed(2).padStart(9)} Mgas/s ${r.milliseconds.toFixed(0).padStart(7)} ms ${String(r.gasUsed).padStart(10)} ${r.name}\n`,
      )
      .join(""),
  );
}, 600_000);
