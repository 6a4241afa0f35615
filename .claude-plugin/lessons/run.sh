#!/bin/sh
# Run the installed package lessons-vault for Claude Code: `sh run.sh prompt | failure | start | end | mcp`.
#
# An agent that was started from a desktop lacks the PATH of a shell, so this also looks where uv, pipx
# and pip put programs. It installs nothing. Where the program is missing, hooks exit with status 0,
# and the start of a session says so once; the MCP server fails.

# an empty or relative entry of the PATH would run what the current folder has
find_program() {
    data=${XDG_DATA_HOME:-$HOME/.local/share}
    IFS=:
    set -f
    for folder in $PATH "$UV_TOOL_BIN_DIR" "$PIPX_BIN_DIR" "$XDG_BIN_HOME" "$HOME/.local/bin" \
        "${UV_TOOL_DIR:-$data/uv/tools}/lessons-vault/bin" \
        "${PIPX_HOME:-$data/pipx}/venvs/lessons-vault/bin" "$HOME/.local/pipx/venvs/lessons-vault/bin"
    do
        case $folder in
            /*) [ -f "$folder/lessons-hook" ] && [ -x "$folder/lessons-hook" ] && return ;;
        esac
    done
    return 1
}

missing="the package lessons-vault is not installed, so no lessons reach the agent; to install it, in a checkout of its repository: uv tool install ."
marker=$CLAUDE_PLUGIN_DATA/missing

# most users record no sessions: the end of a turn then starts no Python
if [ "$1" = end ] && [ -z "$LESSONS_HOME" ] && [ ! -s "$HOME/.lessons/journal/recorded" ]; then
    exit 0
fi

if find_program; then
    if [ "$1" = mcp ]; then
        exec "$folder/lessons" mcp
    fi
    if [ "$1" = start ] && [ -n "$CLAUDE_PLUGIN_DATA" ] && [ -e "$marker" ]; then
        rm -f "$marker"
    fi
    exec "$folder/lessons-hook"
fi

if [ "$1" = mcp ]; then
    echo "$missing" >&2
    exit 1
fi
if [ "$1" = start ] && { [ -z "$CLAUDE_PLUGIN_DATA" ] || [ ! -e "$marker" ]; }; then
    printf '{"systemMessage":"%s"}\n' "$missing"
    if [ -n "$CLAUDE_PLUGIN_DATA" ]; then
        mkdir -p "$CLAUDE_PLUGIN_DATA" && : > "$marker"
    fi
fi 2> /dev/null
exit 0
