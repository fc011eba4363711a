/** The `causeway webhooks` commands, each with its flags. */
import type { Command } from "commander";
import { addShared, type Runner, type SharedOptions } from "../shared-options.js";
import type { AddWebhookOptions, ListDeliveriesOptions } from "./commands.js";

const OUT = "write the secret to a new file of mode 600 and do not show it";

/** Adds the group to the program. */
export function addWebhookCommands(program: Command, run: Runner): void {
  const webhooks = program
    .command("webhooks")
    .description("who is told of events, and what became of each delivery");
  addShared(webhooks.command("list"))
    .description("all webhooks, without their secrets")
    .action(run(async (context) => (await import("./commands.js")).runListWebhooks(context)));
  addShared(webhooks.command("add"))
    .description("have events sent to a URL, from now on; its secret is shown once")
    .argument("<url>", "https on a public address; http to loopback where the setting allows it")
    .option("--events <list>", 'types, "deposit.*", or "*", separated by commas', "*")
    .option("--description <text>", "what people call it")
    .option("--out <file>", OUT)
    .action((url: string, own: SharedOptions & AddWebhookOptions) =>
      run(async (context) => (await import("./commands.js")).runAddWebhook(context, url, own))(own),
    );
  addShared(webhooks.command("remove"))
    .description("send nothing more, and forget the secrets")
    .argument("<id>", "id of the webhook")
    .action((id: string, own: SharedOptions) =>
      run(async (context) => (await import("./commands.js")).runRemoveWebhook(context, id))(own),
    );
  addShared(webhooks.command("redeliver"))
    .description("send events again; switches a webhook on that was switched off")
    .argument("<id>", "id of the webhook")
    .requiredOption("--from <seq>", "first event that is sent again")
    .action((id: string, own: SharedOptions & { from: string }) =>
      run(async (context) => (await import("./commands.js")).runRedeliver(context, id, own.from))(
        own,
      ),
    );
  addShared(webhooks.command("deliveries"))
    .description("what became of each event, oldest first")
    .argument("<id>", "id of the webhook")
    .option("--status <name>", "only pending, delivered or dead ones")
    .option("--limit <n>", "rows, 1000 at most (default 100)")
    .option("--after <seq>", "only behind this event")
    .action((id: string, own: SharedOptions & ListDeliveriesOptions) =>
      run(async (context) => (await import("./commands.js")).runListDeliveries(context, id, own))(
        own,
      ),
    );
  addSecretCommands(webhooks, run);
}

function addSecretCommands(webhooks: Command, run: Runner): void {
  addShared(webhooks.command("add-secret"))
    .description("a second secret: deliveries carry a signature by each until one is retired")
    .argument("<id>", "id of the webhook")
    .option("--out <file>", OUT)
    .action((id: string, own: SharedOptions & { out?: string }) =>
      run(async (context) => (await import("./commands.js")).runAddSecret(context, id, own))(own),
    );
  addShared(webhooks.command("retire-secret"))
    .description("forget a secret; the last one stays")
    .argument("<id>", "id of the webhook")
    .argument("<secret>", "id of the secret, as `webhooks list` shows it")
    .action((id: string, secret: string, own: SharedOptions) =>
      run(async (context) => (await import("./commands.js")).runRetireSecret(context, id, secret))(
        own,
      ),
    );
}
