/** What a command says while its work goes on by itself. */
import { expect, it } from "@jest/globals";
import { withProgress } from "../../../../cli/progress.js";
import { sleep } from "../../../../runtime/process/task.js";
import { inVirtualTime } from "../../../helpers/virtual-time.js";

it("says where work is, every few seconds until it is done, and nothing of short work", async () => {
  await inVirtualTime(async () => {
    const said: string[] = [];
    const { signal } = new AbortController();
    let step = 0;
    const say = (line: string) => void said.push(line);
    const work = async (ms: number) => {
      await sleep(ms, { signal });
      return "done";
    };
    expect(
      await withProgress(
        say,
        () => `step ${++step}`,
        () => work(16_000),
      ),
    ).toBe("done");
    expect(said).toEqual(["step 1", "step 2", "step 3"]);
    expect(
      await withProgress(
        say,
        () => "short",
        () => work(1_000),
      ),
    ).toBe("done");
    const fault = withProgress(
      say,
      () => "faulty",
      () => Promise.reject(new RangeError("no")),
    );
    await expect(fault).rejects.toThrow("no");
    await sleep(60_000, { signal });
    expect(said).toHaveLength(3);
  });
});
