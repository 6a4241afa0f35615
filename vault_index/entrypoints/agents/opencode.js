// opencode runs plugins and no commands: this one asks ours, and adds the answer to the message.
import { spawn } from "node:child_process";

const COMMAND = "lessons-hook";
const LIMIT_MS = { UserPromptSubmit: 5000, SessionStart: 10000, PostToolUseFailure: 5000 }; // ours ends by itself much earlier

function ask(event) {
  return new Promise((resolve) => {
    const options = { stdio: ["pipe", "pipe", "ignore"], timeout: LIMIT_MS[event.hook_event_name] };
    const hook = spawn(COMMAND, ["--agent", "opencode"], options);
    let block = "";
    hook.stdout.setEncoding("utf8");
    hook.stdout.on("data", (text) => (block += text));
    hook.on("error", () => resolve(""));
    hook.on("close", (status) => resolve(status === 0 ? block.trim() : ""));
    hook.stdin.on("error", () => {}); // it ended before it read all
    hook.stdin.end(JSON.stringify(event));
  });
}

export const Lessons = async ({ directory }) => {
  const emptied = new Map(); // sessions without a message since they began or were compacted, by why
  const ofAgents = new Set(); // sessions that an agent started for a task
  return {
    event: async ({ event }) => {
      const session = event.properties?.info;
      if (event.type === "session.created" && session?.parentID) ofAgents.add(session.id);
      else if (event.type === "session.created" && session) emptied.set(session.id, "startup");
      else if (event.type === "session.compacted") emptied.set(event.properties?.sessionID, "compact");
    },
    "chat.message": async (input, output) => {
      try {
        const own = output.parts.filter((part) => part.type === "text" && !part.synthetic);
        if (!own.length || ofAgents.has(input.sessionID)) return;
        const base = { session_id: input.sessionID, cwd: directory, prompt_id: output.message.id };
        const prompt = own.map((part) => part.text).join("\n");
        const source = emptied.get(input.sessionID);
        emptied.delete(input.sessionID);
        const blocks = source ? [await ask({ ...base, hook_event_name: "SessionStart", source })] : [];
        blocks.push(await ask({ ...base, hook_event_name: "UserPromptSubmit", prompt }));
        const last = own[own.length - 1];
        blocks.forEach((text, number) => {
          // opencode sorts parts by id; one that is the model's alone is synthetic
          if (text) output.parts.push({ ...last, id: `${last.id}lessons${number}`, text, synthetic: true });
        });
      } catch {
        // a prompt goes on whatever fails here
      }
    },
    "tool.execute.after": async (input, output) => {
      try {
        const exit = output?.metadata?.exit; // null where the command was stopped
        if (input.tool !== "bash" || !Number.isInteger(exit) || exit === 0) return;
        const text = await ask({
          session_id: input.sessionID,
          cwd: directory,
          hook_event_name: "PostToolUseFailure",
          tool_name: "Bash",
          tool_input: { command: input.args?.command },
          tool_use_id: input.callID,
          error: `Exit code ${exit}\n${output.output}`,
        });
        if (text) output.output = `${output.output}\n\n${text}`;
      } catch {
        // nor does a command's output change
      }
    },
  };
};
