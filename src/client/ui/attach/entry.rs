//! Opens a conversation view: on an existing session, a new one, or one turn of `run`.

use api::methods;
use std::io::{self, IsTerminal as _};

use crate::args::Thinking;
use crate::connection::client::Client;
use crate::connection::connector::Connector;
use crate::connection::environment::EnvironmentArgs;
use crate::connection::follow::SessionFollower;
use crate::connection::paths;
use crate::connection::session_calls::idempotency_key;
use crate::failure::{Failure, code};
use crate::resolve_id;
use crate::terminal::escape;
use crate::terminal::format::session_name;
use crate::terminal::out::OutputStreams;
use crate::ui::attach::app::{App, ClientSetup};
use crate::ui::attach::live::{ConversationStart, LeaveReason, run};
use crate::ui::attach::plain;
use crate::ui::attach::recent::{OmittedPart, find_omitted_part};
use crate::ui::attach::start_lines::StartFacts;
use crate::ui::watch::TurnEnd;
use api::params::{CreateParams, NoParams, SessionParams, SessionReply, StatusReply};
use types::ids::{SessionId, TurnId};
use types::permission::Mode;
use types::session::{SessionState, SessionSummary, SessionView};
use types::time::Timestamp;

/// Display options of a conversation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    pub(crate) thinking: Thinking,
    /// Whether Markdown is shown as it was written.
    pub(crate) is_raw: bool,
    /// Whether lines are printed instead of a screen.
    pub(crate) is_plain: bool,
    /// Whether only the answer is printed; only for `run`.
    pub(crate) is_quiet: bool,
}

/// Whether the terminal can show a screen that is redrawn.
pub(crate) fn is_full_terminal(is_plain: bool) -> bool {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !is_plain && !is_dumb && io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Follows an existing session.
pub(crate) async fn attach(
    reach: &Connector,
    name: &str,
    options: Options,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let client = reach.connect_or_start().await?;
    client.prepare_subscription();
    let session = resolve_id::session(&client, name).await?;
    follow_session(reach, client, session, options, out).await
}

/// Follows a session that is known already.
pub(crate) async fn follow_session(
    reach: &Connector,
    client: Client,
    session: SessionView,
    options: Options,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    if !is_full_terminal(options.is_plain) {
        let include = options.thinking.include();
        let follow = SessionFollower::start_with(reach, &client, session.session_id, 0, include).await?;
        let mut lines = OutputStreams::all_on_stdout();
        lines.set_plain(options.is_plain);
        return plain::plain(client, follow, (session, reach.machine()), &mut lines).await;
    }
    let start = open_existing(reach, client, session, options, out).await?;
    conversations(reach, start, options, out).await
}

/// Shows a conversation, and then those that the user opens from it.
async fn conversations(
    reach: &Connector,
    mut start: ConversationStart,
    options: Options,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    loop {
        let (left, app) = run(start).await?;
        print_farewell(&app, out)?;
        start = match left {
            LeaveReason::Open(session_id) => {
                let client = reach.connect_or_start().await?;
                let reply: SessionReply =
                    client.call::<methods::session::Get>(&SessionParams { session_id }).await?;
                open_existing(reach, client, reply.session, options, out).await?
            }
            LeaveReason::New => new(reach, current_folder_params(reach)?, options).await?,
            LeaveReason::Detached | LeaveReason::Ended(_) => return Ok(()),
        };
    }
}

/// Starts the conversation of an existing session. If it is long, only its last part is read.
async fn open_existing(
    reach: &Connector,
    client: Client,
    session: SessionView,
    options: Options,
    out: &mut OutputStreams,
) -> Result<ConversationStart, Failure> {
    let include = options.thinking.include();
    let OmittedPart { upto, queue } = find_omitted_part(&client, &session).await?;
    let follow = SessionFollower::start_with(reach, &client, session.session_id, upto, include).await?;
    let title = escape::line(&session.summary.title).into_owned();
    out.note(&format!("session {} · {title} · {}", session_name(&session), escape::line(&session.cwd)))?;
    let mut app = App::new(session, setup(reach, options));
    if upto > 0 {
        app.omit_earlier(upto, queue);
    }
    let create = CreateParams::default();
    Ok(ConversationStart {
        reach: reach.clone(),
        client,
        app,
        place: None,
        follow: Some(follow),
        include,
        create,
    })
}

/// Begins a conversation in this folder. The first input creates the session.
pub(crate) async fn start_conversation(
    reach: &Connector,
    create: CreateParams,
    options: Options,
    out: &mut OutputStreams,
) -> Result<(), Failure> {
    let start = new(reach, create, options).await?;
    conversations(reach, start, options, out).await
}

async fn new(
    reach: &Connector,
    create: CreateParams,
    options: Options,
) -> Result<ConversationStart, Failure> {
    let client = reach.connect_or_start().await?;
    let status: StatusReply = client.call::<methods::daemon::Status>(&NoParams {}).await?;
    let model = match create.model.clone().or(status.main_model) {
        Some(model) => model,
        None => return Err(Failure::no_model()),
    };
    let draft = draft(&create, &model)?;
    let place = StartFacts::new(&create.cwd, &model, draft.summary.mode.name(), reach.machine());
    let mut app = App::new(draft, ClientSetup { is_new: true, ..setup(reach, options) });
    app.show_start_lines(vec![place.line()]);
    let create = CreateParams { idempotency_key: Some(idempotency_key()), ..create };
    let include = options.thinking.include();
    Ok(ConversationStart {
        reach: reach.clone(),
        client,
        app,
        place: Some(place),
        follow: None,
        include,
        create,
    })
}

/// Follows one turn of a session on the screen, and ends with it.
pub(crate) async fn follow_one_turn(
    reach: &Connector,
    client: Client,
    follow: SessionFollower,
    (session, turn): (SessionView, TurnId),
    options: Options,
) -> Result<TurnEnd, Failure> {
    let setup = ClientSetup { one_turn: Some(turn), ..setup(reach, options) };
    let name = session_name(&session);
    let app = App::new(session, setup);
    let include = options.thinking.include();
    let start = ConversationStart {
        reach: reach.clone(),
        client,
        app,
        place: None,
        follow: Some(follow),
        include,
        create: CreateParams::default(),
    };
    match run(start).await {
        Ok((LeaveReason::Ended(ended), _)) => Ok(ended),
        Ok((LeaveReason::Detached | LeaveReason::Open(_) | LeaveReason::New, _)) => Err(Failure::new(
            code::ABORTED,
            format!("the session continues; `agentctl attach {name}` shows it"),
        )),
        Err(failure) if failure.code == code::ABORTED && failure.message.is_empty() => {
            Err(Failure::new(code::ABORTED, "the terminal was closed; the session continues"))
        }
        Err(failure) => Err(failure),
    }
}

fn setup(reach: &Connector, options: Options) -> ClientSetup {
    ClientSetup {
        flags: reach.places.flags.clone(),
        machine: reach.machine(),
        is_raw: options.is_raw,
        is_plain: options.is_plain,
        ..ClientSetup::default()
    }
}

fn print_farewell(app: &App, out: &mut OutputStreams) -> Result<(), Failure> {
    if app.setup.is_new {
        return Ok(());
    }
    let name = session_name(&app.session);
    let how = match app.session.summary.state {
        SessionState::Running => "it continues",
        SessionState::RequiresAction => "it waits for you",
        SessionState::Ended => "it has ended",
        _ => "it is kept",
    };
    Ok(out.note(&format!("left {name}, {how} · agentctl attach {}", name.trim_start_matches('#')))?)
}

/// The known fields of a session that does not exist yet.
fn draft(create: &CreateParams, model: &str) -> Result<SessionView, Failure> {
    let nil: SessionId = "ses_00000000-0000-7000-8000-000000000000"
        .parse()
        .map_err(|_| Failure::internal("could not name the new session"))?;
    Ok(SessionView {
        session_id: nil,
        number: 0,
        summary: SessionSummary {
            model: model.to_owned(),
            mode: create.mode.unwrap_or(Mode::Default),
            thinking: create.thinking,
            ..SessionSummary::default()
        },
        cwd: create.cwd.clone(),
        background: false,
        created_at_ms: Timestamp(0),
        last_seq: 0,
        models: Default::default(),
        clients: 1,
        background_commands: Vec::new(),
        forked_from: None,
        job_id: None,
        parent_session_id: None,
        parent_call_id: None,
        agent: None,
        matches: Vec::new(),
        details: None,
    })
}

/// The parameters of a new session in the current folder.
pub(crate) fn current_folder_params(reach: &Connector) -> Result<CreateParams, Failure> {
    let folder = paths::current_folder()?;
    let cwd = folder.to_str().map(str::to_owned);
    let cwd = cwd.ok_or_else(|| Failure::usage("the folder's name is not UTF-8"))?;
    let env = Some(EnvironmentArgs::default().collect(reach.machine())?);
    Ok(CreateParams { cwd, env, ..CreateParams::default() })
}
