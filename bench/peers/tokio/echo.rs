// SPDX-License-Identifier: MIT
// The echo server of compare_echo.py with tokio: a task for each connection, on one thread.
use std::io::Result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{signal, SignalKind};

async fn echo(mut peer: TcpStream) -> Result<()> {
    peer.set_nodelay(true)?;
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let size = peer.read(&mut buffer).await?;
        if size == 0 {
            return Ok(());
        }
        peer.write_all(&buffer[..size]).await?;
    }
}

async fn serve(listener: TcpListener) -> Result<()> {
    loop {
        let (peer, _) = listener.accept().await?;
        tokio::spawn(echo(peer));
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let port = std::env::args().nth(2).unwrap_or_else(|| "0".into());
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    let mut stop = signal(SignalKind::terminate())?;
    println!("listening on {}", listener.local_addr()?);
    tokio::select! {
        ended = serve(listener) => ended,
        _ = stop.recv() => Ok(()),
    }
}
