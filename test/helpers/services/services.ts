/** What the run's helper process (test-services.mjs) offers, asked for over loopback. */
import { get } from "node:http";

/** Folder with the product compiled from the present sources, for child processes of tests. */
export async function compiledFolder(): Promise<string> {
  return (await ask("/compiled", "folder")).replace(/\/$/, "");
}

/** URL of a superuser on the run's PostgreSQL, or on the one of DATABASE_URL_TEST_SERVER. */
export async function postgresServerUrl(): Promise<string> {
  const given = process.env["DATABASE_URL_TEST_SERVER"];
  return given === undefined || given === "" ? ask("/postgres", "url") : given;
}

function ask(path: string, key: string): Promise<string> {
  const port = process.env["CAUSEWAY_TEST_SERVICES"];
  if (port === undefined) {
    throw new Error("the helper of jest's globalSetup is not running");
  }
  return new Promise((resolve, reject) => {
    // A connection of its own: a kept one may be closed by the helper just as it is used again.
    const request = get({ host: "127.0.0.1", port, path, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => {
        if (response.statusCode === 200) {
          resolve(String((JSON.parse(text) as Record<string, unknown>)[key]));
        } else {
          reject(new Error(`test services: ${text}`));
        }
      });
    });
    request.on("error", reject);
  });
}
